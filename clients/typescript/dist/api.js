// Generated from openapi/openapi.yaml by "go run ./clients/typescript/generate". Do not edit.
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
    receiveInboundEvent: { method: "POST", path: "/v1/events/inbound/{source_id}", status: 202 },
    getOpenApiDocument: { method: "GET", path: "/v1/openapi.json", status: 200 },
};
