package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config is what the standard environment variables of OpenTelemetry ask for.
type Config struct {
	endpoint    string
	headers     map[string]string
	timeout     time.Duration
	json        bool
	gzip        bool
	certificate string // PEM file of the roots that the collector's certificate must chain to
	attributes  []Attribute

	sampler sampler

	queueSize, batchSize int
	delay                time.Duration
}

// Endpoint returns the scheme, host and path that spans are sent to. Other parts of the
// address may have a secret.
func (c Config) Endpoint() string {
	u, err := url.Parse(c.endpoint)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// Target is where and how requests are sent to the collector.
type Target struct {
	URL     string
	Header  map[string]string
	Timeout time.Duration // of one request
	// CertificateFile has the roots that the collector's certificate must chain to, in
	// PEM; empty: those of the system.
	CertificateFile string
}

// Target returns where the spans are sent to. Its URL and its header may have secrets.
func (c Config) Target() Target {
	t := Target{URL: c.endpoint, Header: map[string]string{"Content-Type": "application/x-protobuf", "User-Agent": "fiscalhub"}, Timeout: c.timeout, CertificateFile: c.certificate}
	if c.json {
		t.Header["Content-Type"] = "application/json"
	}
	if c.gzip {
		t.Header["Content-Encoding"] = "gzip"
	}
	for name, value := range c.headers {
		t.Header[name] = value
	}
	return t
}

// ReadConfig reads the environment variables that begin with OTEL_. It reports false when
// they do not ask for traces. It fails when a variable is not valid, and names the
// variable.
func ReadConfig(getenv func(string) string, version string) (c Config, on bool, err error) {
	e := environment{get: getenv}
	if strings.EqualFold(e.get("OTEL_SDK_DISABLED"), "true") {
		return Config{}, false, nil
	}
	switch e.get("OTEL_TRACES_EXPORTER") {
	case "", "otlp":
	case "none":
		return Config{}, false, nil
	default:
		return Config{}, false, errors.New("OTEL_TRACES_EXPORTER: the service exports traces by otlp only; use otlp or none")
	}
	c.endpoint = e.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if c.endpoint == "" {
		if base := e.get("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
			c.endpoint = strings.TrimRight(base, "/") + "/v1/traces"
		}
	}
	if c.endpoint == "" {
		return Config{}, false, nil
	}
	if u, err := url.Parse(c.endpoint); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return Config{}, false, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT must be an address like http://127.0.0.1:4318")
	}
	c.headers = e.pairs("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
	c.timeout = e.milliseconds(10*time.Second, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
	switch protocol := e.first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "", "http/protobuf":
	case "http/json":
		c.json = true
	default:
		e.fail("OTEL_EXPORTER_OTLP_PROTOCOL", "must be http/protobuf or http/json")
	}
	switch compression := e.first("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION"); compression {
	case "", "none":
	case "gzip":
		c.gzip = true
	default:
		e.fail("OTEL_EXPORTER_OTLP_COMPRESSION", "must be gzip or none")
	}
	c.certificate = e.first("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")
	c.attributes = e.resource(version)
	c.sampler = e.sampler()
	c.queueSize = e.count("OTEL_BSP_MAX_QUEUE_SIZE", 2048)
	c.batchSize = min(e.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), c.queueSize)
	c.delay = e.milliseconds(5*time.Second, "OTEL_BSP_SCHEDULE_DELAY")
	return c, true, e.err
}

// environment reads variables, and keeps the first problem.
type environment struct {
	get func(string) string
	err error
}

func (e *environment) fail(name, problem string) {
	if e.err == nil {
		e.err = fmt.Errorf("%s %s", name, problem)
	}
}

// first returns the value of the first variable that is set.
func (e *environment) first(names ...string) string {
	for _, name := range names {
		if value := e.get(name); value != "" {
			return value
		}
	}
	return ""
}

func (e *environment) milliseconds(value time.Duration, names ...string) time.Duration {
	for _, name := range names {
		text := e.get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			e.fail(name, "must be a number of milliseconds")
			return value
		}
		return time.Duration(n) * time.Millisecond
	}
	return value
}

func (e *environment) count(name string, value int) int {
	text := e.get(name)
	if text == "" {
		return value
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		e.fail(name, "must be a number of 1 or more")
		return value
	}
	return int(n)
}

// pairs reads lists like name=value,name=value with escapes as in a URL. Later variables
// win. An error never quotes a value: headers have secrets.
func (e *environment) pairs(names ...string) map[string]string {
	all := map[string]string{}
	for _, name := range names {
		for _, pair := range strings.Split(e.get(name), ",") {
			if strings.TrimSpace(pair) == "" {
				continue
			}
			key, value, ok := strings.Cut(pair, "=")
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if key = strings.TrimSpace(key); !ok || err != nil || key == "" || strings.ContainsAny(value, "\r\n") {
				e.fail(name, "must be a list like name=value,name=value")
				continue
			}
			all[key] = value
		}
	}
	return all
}

// resource returns the attributes of the service.
func (e *environment) resource(version string) []Attribute {
	given := e.pairs("OTEL_RESOURCE_ATTRIBUTES")
	for key, value := range map[string]string{"service.name": "fiscalhub", "service.version": version, "telemetry.sdk.language": "go", "telemetry.sdk.name": "fiscalhub"} {
		if given[key] == "" {
			given[key] = value
		}
	}
	if name := e.get("OTEL_SERVICE_NAME"); name != "" {
		given["service.name"] = name
	}
	return sortedAttributes(given)
}

// sampler decides which traces are exported.
type sampler struct {
	parentBased bool
	ratio       float64 // of the traces that have no parent, or of all traces
}

// sampler reads the sampler. The default exports every trace, unless the caller says
// that it does not.
func (e *environment) sampler() sampler {
	name := e.get("OTEL_TRACES_SAMPLER")
	base, parentBased := strings.CutPrefix(name, "parentbased_")
	switch {
	case name == "":
		return sampler{true, 1}
	case base == "always_on":
		return sampler{parentBased, 1}
	case base == "always_off":
		return sampler{parentBased, 0}
	case base == "traceidratio":
		ratio, err := strconv.ParseFloat(e.get("OTEL_TRACES_SAMPLER_ARG"), 64)
		if e.get("OTEL_TRACES_SAMPLER_ARG") == "" {
			ratio, err = 1, nil
		}
		if err != nil || math.IsNaN(ratio) || ratio < 0 || ratio > 1 {
			e.fail("OTEL_TRACES_SAMPLER_ARG", "must be a number from 0 to 1")
		}
		return sampler{parentBased, ratio}
	}
	e.fail("OTEL_TRACES_SAMPLER", "must be always_on, always_off, traceidratio, or one of them with parentbased_ before it")
	return sampler{}
}

// sample decides whether a trace is exported. The decision about a trace id is the same
// on all nodes and after a restart.
func (t *Tracer) sample(parent Context, id [16]byte) bool {
	s := t.config.sampler
	if s.parentBased && parent.Valid() {
		return parent.Sampled
	}
	switch s.ratio {
	case 0:
		return false
	case 1:
		return true
	}
	return float64(binary.BigEndian.Uint64(id[8:])>>1) < s.ratio*(1<<63)
}
