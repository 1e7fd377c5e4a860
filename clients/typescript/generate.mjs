// Writes src/openapi.ts, the types of the OpenAPI document.
import { writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const { factory } = ts;
const literal = (value) => factory.createLiteralTypeNode(factory.createStringLiteral(value));
// Values may be added later. With `string & {}` the editor still proposes the known ones.
const other = factory.createIntersectionTypeNode([
  factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword),
  factory.createTypeLiteralNode([]),
]);

const document = new URL("../../openapi/openapi.yaml", import.meta.url);
const tree = await openapiTS(document, {
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  emptyObjectsUnknown: true, // the parts of an event describe its data
  transform(schema) {
    const known = schema["x-extensible-enum"];
    return known && factory.createUnionTypeNode([...known.map(literal), other]);
  },
});
writeFileSync(new URL("src/openapi.ts", import.meta.url), astToString(tree));
