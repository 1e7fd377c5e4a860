'use strict';
const spec = document.getElementById('docs').dataset.spec;
SwaggerUIBundle({
  url: spec,
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null, // no badge of a foreign service
  persistAuthorization: false, // a key must not outlive the page
  queryConfigEnabled: false, // a link must not make the page load another document
  defaultModelsExpandDepth: 0,
  docExpansion: 'list',
  presets: [SwaggerUIBundle.presets.apis],
});
