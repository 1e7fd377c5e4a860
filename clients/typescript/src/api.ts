// The names of the API in TypeScript. generate.mjs writes src/openapi.ts.
import type { components, operations as described, paths } from "./openapi.js";

export type {
  Error as ErrorAnswer, Address, Buyer, CredentialEvent, CredentialRefusedEvent, Currency, Decimal,
  DeclaredTotals, DetailCode, Discount, EcfType, Encf, ErrorCode, ErrorDetail, EstimatedWithholdings,
  EventEnvelope, EventFeed, EventId, EventKind, ExternalId, FiscalDocument, FiscalDocumentEnvelope,
  FiscalDocumentList, FiscalEvent, FiscalEventData, Inbound, InboundEnvelope, InboundEvent, Invoice,
  InvoiceEnvelope, InvoiceList, InvoicePath, InvoiceRequest, Line, Meta, Nothing, NullableDecimal, PageMeta,
  RequestId, Status, Tax, TaxpayerEvent, Timestamp, Totals, TrackId, Uuid, WebhookDelivery,
  WebhookDeliveryList, WebhookEndpoint, WebhookEndpointCreated, WebhookEndpointCreatedEnvelope,
  WebhookEndpointEnvelope, WebhookEndpointEvent, WebhookEndpointList, WebhookEndpointRequest,
  WebhookEndpointSecret, WebhookEndpointSecretEnvelope, WebhookReplay, WebhookReplayEnvelope,
  WebhookReplayRequest, WebhookTest, WebhookTestEnvelope,
} from "./openapi.js";
export type SandboxScenario = components["parameters"]["SandboxScenario"];
export type PageFormat = components["parameters"]["PageFormat"];

type Method = "get" | "post" | "delete";
/** A path of the document, and a method that it has. */
type Route = {
  [P in keyof paths]: { [M in Method]: paths[P][M] extends object ? { path: P; method: Uppercase<M> } : never }[Method];
}[keyof paths];
/** The operations of integrators with an API key. */
type Operation = Exclude<keyof described, `receive${string}` | "getOpenApiDocument">;

/** The operations of the API: method, path, and the status of a success. */
export const operations = {
  createInvoice: { method: "POST", path: "/v1/taxpayers/{taxpayer_id}/invoices", status: 202 },
  listInvoices: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/invoices", status: 200 },
  getInvoice: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/invoices/{invoice_id}", status: 200 },
  searchFiscalDocuments: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/fiscal-documents", status: 200 },
  getFiscalDocument: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/fiscal-documents/{document_id}", status: 200 },
  downloadFiscalDocumentXml: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/fiscal-documents/{document_id}/xml", status: 200 },
  downloadFiscalDocumentPdf: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/fiscal-documents/{document_id}/pdf", status: 200 },
  listEvents: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/events", status: 200 },
  createWebhookEndpoint: { method: "POST", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints", status: 201 },
  listWebhookEndpoints: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints", status: 200 },
  getWebhookEndpoint: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints/{endpoint_id}", status: 200 },
  deleteWebhookEndpoint: { method: "DELETE", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints/{endpoint_id}", status: 204 },
  rotateWebhookEndpointSecret: { method: "POST", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints/{endpoint_id}/rotate-secret", status: 200 },
  enableWebhookEndpoint: { method: "POST", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints/{endpoint_id}/enable", status: 200 },
  testWebhookEndpoint: { method: "POST", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints/{endpoint_id}/test", status: 200 },
  replayWebhookEvents: { method: "POST", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints/{endpoint_id}/replay", status: 202 },
  listWebhookDeliveries: { method: "GET", path: "/v1/taxpayers/{taxpayer_id}/webhook-endpoints/{endpoint_id}/deliveries", status: 200 },
} as const satisfies { [O in Operation]: Route & { status: keyof described[O]["responses"] } };
