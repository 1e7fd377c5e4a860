'use strict';
const spec = document.getElementById('docs').dataset.spec;
SwaggerUIBundle({
  url: spec,
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null, // no badge from another site
  persistAuthorization: false, // forget the key when the page is closed
  queryConfigEnabled: false, // a link must not load another document into the page
  defaultModelsExpandDepth: 0,
  docExpansion: 'list',
  presets: [SwaggerUIBundle.presets.apis],
});
