// Generated from openapi/openapi.yaml by "go run ./clients/typescript/generate". Do not edit.

/** UUID of version 1 to 8, or all zeros, or all f. Requests may use either letter case; answers use lower case. */
export type Uuid = string;

export type RequestId = string;

export type EventId = string;

export type InvoicePath = string;

/** UTC with milliseconds. */
export type Timestamp = string;

/** Non-negative decimal without sign, exponent or unnecessary leading zeros; at most 18 digits. */
export type Decimal = string;

/** As `Decimal`; null stands for "absent". */
export type NullableDecimal = string | null;

/** Stable identifier of the invoice in your system. It is compared exactly and can never be used for another invoice. */
export type ExternalId = string;

/** `31` fiscal credit invoice, `32` consumer invoice. */
export type EcfType = "31" | "32";

export type Currency = "DOP";

/** See the table of states. */
export type Status = "queued" | "validation_failed" | "submitted" | "processing" | "accepted" | "accepted_conditional" | "rejected" | "outcome_unknown" | "delivered";

/** The fiscal number. Null until one is taken, and always in the sandbox. */
export type Encf = string | null;

/**
 * Identifier that the authority gives to the submission. Null before submission, for a `32` below RD$250,000
 * (which is answered at once), and always in the sandbox.
 */
export type TrackId = string | null;

/**
 * Both types have the same members; each type has its own rules. A `31` needs `buyer.tax_id`, and so does
 * a `32` from RD$250,000.00. `due_date` is required on credit. Withholdings belong to a `31`.
 * Text must not be blank.
 */
export interface InvoiceRequest {
  external_id: ExternalId;
  ecf_type: EcfType;
  /** A date of the years 1900 to 2099. Not after today in Santo Domingo, except in the sandbox. */
  issue_date: string;
  /** A date of the years 1900 to 2099. Not before `issue_date`. */
  due_date?: string | null;
  currency: Currency;
  /** Language of the printed representation. */
  language?: "es" | "en";
  /** `cash` is payment type 1 of the authority, `credit` 2, `free_of_charge` 3. */
  payment_type: "cash" | "credit" | "free_of_charge";
  buyer: Buyer;
  lines: Line[];
  declared_totals: DeclaredTotals;
  purchase_order?: string;
  payment_terms?: string;
  notes?: string;
  estimated_withholdings?: EstimatedWithholdings;
}

export interface Buyer {
  legal_name: string;
  /** RNC (9 digits), cédula (11 digits), or a foreign identifier on a `32`. */
  tax_id?: string;
  email?: string;
  phone?: string;
  address?: Address;
}

export interface Address {
  line1: string;
  line2?: string;
  city: string;
  province_or_state?: string;
  postal_code?: string;
  country_code: string;
}

export interface Line {
  /** Your identifier of the line; it need not be unique. Problems refer to lines by index. */
  line_id: string;
  description: string;
  sku?: string;
  /** Free text. The service infers the unit code from it, unless `unit_code` is there. A note tells when it cannot. */
  unit?: string;
  /** `product` is indicator 1 of the authority, `service` 2. */
  item_kind: "product" | "service";
  /**
   * The authority's billing indicator, when it should not be inferred from the taxes: 1 is 18 %,
   * 2 is 16 %, 3 is 0 %, 4 is exempt. It must agree with the ITBIS entry of the line, if there is one.
   */
  billing_indicator?: 1 | 2 | 3 | 4;
  /**
   * The authority's unit of measure, when it cannot be inferred from `unit`. An integer from 1 to 68, but not 59.
   * It counts more than `unit`; a note tells when the two contradict each other.
   */
  unit_code?: number;
  /** More than 0, at most 2 decimals. */
  quantity: Decimal;
  /** Before discount and taxes, at most 4 decimals. */
  unit_price: Decimal;
  /** The member must be present; null when there is none. */
  discount: Discount | null;
  /** Empty for an exempt line. The `code` alone says which tax an entry is. */
  taxes: Tax[];
}

export interface Discount {
  kind: "percentage";
  /** Percentage from 0 to 100. */
  value: Decimal;
}

export interface Tax {
  /**
   * `ITBIS` (or a code that contains it, `IVA`, `VAT`) at 18, 16 or 0; `EXENTO` (or `EXENTA`, `EXEMPT`) at 0;
   * or an additional tax of the authority: `001` (`PROPINA`) 10, `002` (`CDT`) 2, `003` (`ISC SEGUROS`) 16,
   * `004` (`ISC TELECOM`) 10, `005` (`PRIMERA PLACA`) 17. Case, spaces and punctuation do not matter. Any other
   * code is refused with `unknown_tax`: neither the label nor the rate says which tax it is.
   */
  code: string;
  label: string;
  rate_percent: Decimal;
}

/** The totals that your system computed. The service checks them against the lines. */
export interface DeclaredTotals {
  subtotal: Decimal;
  discount_total: Decimal;
  tax_total: Decimal;
  total: Decimal;
}

/** The amounts that the buyer is expected to withhold. When base and rate are given, their product must be the amount. */
export interface EstimatedWithholdings {
  income_tax_amount: Decimal;
  income_tax_base_amount?: NullableDecimal;
  income_tax_rate_percent?: NullableDecimal;
  itbis_amount: Decimal;
  itbis_base_amount?: NullableDecimal;
  itbis_rate_percent?: NullableDecimal;
}

export interface Invoice {
  id: Uuid;
  taxpayer_id: Uuid;
  external_id: ExternalId;
  ecf_type: EcfType;
  status: Status;
  /** The fiscal document, created together with the invoice. Clients must accept null. */
  fiscal_document_id: Uuid | null;
  currency: Currency;
  issue_date: string;
  totals: Totals;
  created_at: Timestamp;
  updated_at: Timestamp;
}

/** The declared totals as they were sent, and the amounts that follow from the payment type. */
export interface Totals {
  subtotal: Decimal;
  discount_total: Decimal;
  tax_total: Decimal;
  total: Decimal;
  /** The total for `cash`, otherwise 0. */
  paid: Decimal;
  /** The total for `credit`, otherwise 0. */
  balance: Decimal;
}

export interface FiscalDocument {
  id: Uuid;
  taxpayer_id: Uuid;
  invoice_id: Uuid;
  external_id: ExternalId;
  ecf_type: EcfType;
  status: Status;
  encf: Encf;
  track_id: TrackId;
  currency: Currency;
  issue_date: string;
  /** The computed total, with two decimals. */
  total: Decimal;
  /**
   * Messages of the authority as `[code] text`, then what each known code means and what to do,
   * in the language of `Accept-Language`, then notes of the service without a code. A
   * note starts with its field. Notes describe, among others, everything that the fiscal
   * document or the printed page cannot show as it was sent: texts and identifiers that were cut
   * or omitted, units that are not in the authority's table or contradict their code, line breaks
   * that became spaces, characters that were replaced.
   */
  status_messages: string[];
  /** Absolute addresses of the document, its XML and its PDF. */
  links: {
    self: string;
    xml: string;
    pdf: string;
  };
  created_at: Timestamp;
  updated_at: Timestamp;
}

export interface Meta {
  request_id: RequestId;
}

export interface InvoiceEnvelope {
  data: Invoice;
  meta: Meta;
}

export interface InvoiceList {
  data: Invoice[];
  meta: {
    request_id: RequestId;
    /** Null on the last page. */
    next_cursor: string | null;
  };
}

export interface FiscalDocumentEnvelope {
  data: FiscalDocument;
  meta: Meta;
}

export interface FiscalDocumentList {
  data: FiscalDocument[];
  meta: Meta;
}

/** Closed set; see the table of errors. */
export type ErrorCode = "bad_request" | "invalid_json" | "validation_error" | "unauthorized" | "forbidden" | "not_found" | "idempotency_mismatch" | "external_id_conflict" | "operational_readiness_failed" | "artifact_not_ready" | "rate_limited" | "service_unavailable" | "internal_error";

/** See the table of detail codes. Codes may be added. */
export type DetailCode = "required" | "invalid_type" | "invalid_enum" | "invalid_format" | "invalid_decimal" | "invalid_date" | "date_in_future" | "date_order" | "too_short" | "too_long" | "too_few_items" | "too_many_items" | "blank" | "invalid_characters" | "unknown_field" | "out_of_range" | "total_mismatch" | "required_for_type" | "not_allowed_for_type" | "already_exists" | "duplicated" | "unknown_parameter" | "duplicate_parameter" | "invalid_cursor" | "too_many_errors" | "unknown_tax" | "unsupported_tax" | "tax_conflict" | "taxpayer.profile_incomplete" | "certificate.missing" | "certificate.expired" | "certificate.not_yet_valid" | "certificate.revoked" | "sequence.missing" | "sequence.exhausted" | "sequence.expired" | "sequence.fenced" | "environment.disabled" | "dgii.delegation_rejected" | (string & {});

export interface ErrorAnswer {
  error: {
    code: ErrorCode;
    /** Text for people, in the language of the answer. */
    message: string;
    request_id: RequestId;
    details?: ErrorDetail[];
  };
}

export interface ErrorDetail {
  /** Dotted path into the body (empty for the whole body), or name of a parameter or header. */
  field: string;
  code: DetailCode;
  message: string;
}

export interface PageMeta {
  request_id: RequestId;
  /** Null on the last page. */
  next_cursor: string | null;
}

/** An empty object. */
export type Nothing = Record<string, never>;

/** A kind of event, or `*` for all of them. Kinds may be added. */
export type EventKind = "*" | "invoice.validation_failed" | "fiscal_document.submitted" | "fiscal_document.processing" | "fiscal_document.accepted" | "fiscal_document.accepted_conditional" | "fiscal_document.rejected" | "fiscal_document.outcome_unknown" | "fiscal_document.delivered" | "fiscal_document.delivery_failed" | "fiscal_document.commercial_response" | "fiscal_document.commercial_response_unconfirmed" | "fiscal_document.verdict_overdue" | "fiscal_document.artifacts_ready" | "taxpayer.certificate_expiring" | "taxpayer.sequence_low" | "taxpayer.contingency_started" | "taxpayer.contingency_ended" | "credential.expiring" | "credential.refused" | "webhook_endpoint.disabled" | "webhook.test" | (string & {});

export interface WebhookEndpointRequest {
  /**
   * Address to which events are posted: https, port 443, the name of a public host, without
   * user and fragment.
   */
  url: string;
  /** The kinds of events to send to this endpoint, each once. */
  events: EventKind[];
  /** Free text for people. */
  description?: string;
}

export interface WebhookEndpoint {
  id: Uuid;
  url: string;
  events: string[];
  description: string | null;
  /** The service sends nothing to a disabled endpoint until it is enabled. */
  status: "enabled" | "disabled";
  created_at: Timestamp;
  updated_at: Timestamp;
}

export type WebhookEndpointSecret = WebhookEndpoint & {
  /** Secret that signs the events. Store it; it is not shown again. */
  secret: string;
};

export interface WebhookEndpointEnvelope {
  data: WebhookEndpoint;
  meta: Meta;
}

export type WebhookEndpointCreated = WebhookEndpoint & {
  /**
   * Secret that signs the events. Store it. Absent in a repeated answer when the secret is no
   * longer the one of the endpoint.
   */
  secret?: string;
};

export interface WebhookEndpointCreatedEnvelope {
  data: WebhookEndpointCreated;
  meta: Meta;
}

export interface WebhookEndpointSecretEnvelope {
  data: WebhookEndpointSecret;
  meta: Meta;
}

export interface WebhookEndpointList {
  data: WebhookEndpoint[];
  meta: PageMeta;
}

export interface WebhookTest {
  delivered: boolean;
  /** Null when there was no answer. */
  http_status: number | null;
  /** Class of the failure, such as `dns`, `connect`, `tls`, `timeout` or `status_500`. */
  error: string | null;
}

export interface WebhookTestEnvelope {
  data: WebhookTest;
  meta: Meta;
}

export interface WebhookReplayRequest {
  event_id?: EventId;
  since?: string;
  failed?: true;
}

export interface WebhookReplay {
  /**
   * How many events will be sent. The number is exact when `at_least` is absent. It is
   * counted before the deliveries are prepared, so events of the same moment may be missing.
   */
  events: number;
  /**
   * Present when more than 10,000 events are selected. They are all sent, but `events`
   * counts only those among the first 10,000.
   */
  at_least?: true;
}

export interface WebhookReplayEnvelope {
  data: WebhookReplay;
  meta: Meta;
}

export interface WebhookDelivery {
  event_id: EventId;
  /** Kind of the event. */
  type: string;
  /** Which attempt of this event it was. */
  attempt: number;
  attempted_at: Timestamp;
  /** Null when there will be no other attempt. */
  next_attempt_at: Timestamp | null;
  /** Null when there was no answer. */
  http_status: number | null;
  /** Class of the failure; null when it was delivered. */
  error: string | null;
}

export interface WebhookDeliveryList {
  data: WebhookDelivery[];
  meta: PageMeta;
}

export interface EventFeed {
  data: (FiscalEvent | TaxpayerEvent | CredentialEvent | CredentialRefusedEvent | WebhookEndpointEvent | EventEnvelope)[];
  meta: {
    request_id: RequestId;
    /** Position after the last event of the page, or the position of the request when the page is empty. */
    next_cursor: string;
    /** More events exist already. */
    has_more: boolean;
  };
}

export interface InboundEvent {
  type: "ecf.receipt_acknowledged" | "ecf.commercial_response";
  timestamp?: string;
  data: {
    /** The document that the message is about. */
    encf: string;
    /** The signed ARECF or ACECF that the buyer sent, in base64. */
    xml_base64: string;
  };
}

export interface Inbound {
  event_id: EventId;
  /** The message was received before and has no effect now. */
  duplicate: boolean;
}

export interface InboundEnvelope {
  data: Inbound;
  meta: Meta;
}

export interface EventEnvelope {
  id: EventId;
  /** Kind of the event. Kinds may be added; ignore those that you do not know. */
  type: string;
  timestamp: Timestamp;
  api_version: "v1";
  environment: "certification" | "production";
  taxpayer_id: Uuid;
  data: {
    object: unknown;
    id: unknown;
  };
}

export type FiscalEvent = EventEnvelope & {
  type?: "invoice.validation_failed" | "fiscal_document.submitted" | "fiscal_document.processing" | "fiscal_document.accepted" | "fiscal_document.accepted_conditional" | "fiscal_document.rejected" | "fiscal_document.outcome_unknown" | "fiscal_document.delivered" | "fiscal_document.delivery_failed" | "fiscal_document.commercial_response" | "fiscal_document.commercial_response_unconfirmed" | "fiscal_document.verdict_overdue" | "fiscal_document.artifacts_ready" | (string & {});
  data?: FiscalEventData;
};

export interface FiscalEventData {
  /** Type of the resource that `id` identifies. */
  object: "invoice" | "fiscal_document";
  id: Uuid;
  invoice_id: Uuid;
  external_id: ExternalId;
  ecf_type: EcfType;
  status: Status;
  /** Absent when the event changed no status. */
  previous_status?: Status;
  /** Number of this status in the history of the document. Creation is 1 and has no event. */
  sequence: number;
  encf: Encf;
  track_id: TrackId;
  issue_date: string;
  total: Decimal;
  links: {
    /** Absolute address of the fiscal document. */
    self: string;
  };
  /** Only with `fiscal_document.commercial_response` and `fiscal_document.commercial_response_unconfirmed`. */
  result?: "accepted" | "rejected";
  /**
   * Only with `fiscal_document.commercial_response` and
   * `fiscal_document.commercial_response_unconfirmed`: the identifier of the person who signed
   * the response, from the certificate. It is a cédula or an RNC when it has digits alone.
   */
  signer?: string;
  /**
   * Only with a `fiscal_document.commercial_response` that says the opposite of an earlier one:
   * the result of the earlier one, which stands.
   */
  contradicts?: "accepted" | "rejected";
  /** With `fiscal_document.commercial_response` and `fiscal_document.commercial_response_unconfirmed`, the text of the response; with `fiscal_document.delivery_failed`, the reason; with `fiscal_document.verdict_overdue`, `no_verdict_for_15_minutes` or `outcome_unknown_for_24_hours`. */
  reason?: string | null;
}

export type TaxpayerEvent = EventEnvelope & {
  type?: "taxpayer.certificate_expiring" | "taxpayer.sequence_low" | "taxpayer.contingency_started" | "taxpayer.contingency_ended" | (string & {});
  data?: {
    object?: "taxpayer";
    id?: Uuid;
    ecf_type?: EcfType;
    /** Numbers left in the range. */
    remaining?: number;
    expires_at?: Timestamp;
  };
};

export type CredentialEvent = EventEnvelope & {
  type?: "credential.expiring";
  data?: {
    object?: "credential";
    id?: string;
    expires_at?: Timestamp;
  };
};

export type CredentialRefusedEvent = EventEnvelope & {
  type?: "credential.refused";
  data?: {
    object?: "credential";
    id?: string;
    /** Why the key is not valid. Reasons may be added. */
    reason?: "revoked" | "suspended" | (string & {});
  };
};

export type WebhookEndpointEvent = EventEnvelope & {
  type?: "webhook_endpoint.disabled";
  data?: {
    object?: "webhook_endpoint";
    id?: Uuid;
  };
};

/**
 * Sandbox only, ignored elsewhere: the status to which the synthetic document goes, one step per
 * second, starting as `queued`. An unknown value, or `delivered` for a `32`, is answered 400.
 */
export type SandboxScenario = "submitted" | "processing" | "accepted" | "accepted_conditional" | "rejected" | "outcome_unknown" | "delivered" | "validation_failed";

/**
 * Paper of the printed representation: `letter`, `receipt` (a roll of 80 mm) or `receipt58` (a
 * roll of 58 mm, of which the printer uses 48 mm). Without it, the format of the taxpayer.
 */
export type PageFormat = "letter" | "receipt" | "receipt58";

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
} as const;
