package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
)

// object is a part of a YAML document.
type object = map[string]any

// at returns the value at a path of keys and indexes, for example "spec.template.spec.0".
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case object:
			v = x[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// manifests reads all documents of deploy/kubernetes by kind and name.
func manifests(t *testing.T) map[string]object {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("manifests: %q, %v", files, err)
	}
	all := map[string]object{}
	for _, file := range files {
		d := yaml.NewDecoder(bytes.NewReader(read(t, file)))
		for {
			var o object
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all[fmt.Sprint(o["kind"], "/", at(o, "metadata.name"))] = o
		}
	}
	return all
}

// The keys of the objects that the manifests have, from the API of Kubernetes. A key that is
// written wrong would be ignored or refused only in a cluster.
func manifestKeys() map[string]string {
	const meta, pod = "name namespace labels annotations", "restartPolicy automountServiceAccountToken securityContext containers volumes terminationGracePeriodSeconds topologySpreadConstraints"
	const container = "name image args env envFrom ports startupProbe readinessProbe livenessProbe securityContext resources volumeMounts"
	return map[string]string{
		"Namespace": "apiVersion kind metadata", "ConfigMap": "apiVersion kind metadata data", "Secret": "apiVersion kind metadata type stringData",
		"Job": "apiVersion kind metadata spec", "Deployment": "apiVersion kind metadata spec", "Service": "apiVersion kind metadata spec",
		"PodDisruptionBudget": "apiVersion kind metadata spec", "NetworkPolicy": "apiVersion kind metadata spec", "Kustomization": "apiVersion kind namespace resources images",
		".metadata": meta, ".spec.template.metadata": meta, ".spec.template": "metadata spec", ".spec.template.spec": pod, ".spec.template.spec.containers": container,
		"Job.spec": "backoffLimit ttlSecondsAfterFinished template", "Deployment.spec": "replicas strategy minReadySeconds selector template",
		"Service.spec": "selector ports", "PodDisruptionBudget.spec": "maxUnavailable selector", "NetworkPolicy.spec": "podSelector policyTypes ingress",
		".spec.template.spec.securityContext":            "runAsNonRoot runAsUser runAsGroup fsGroup seccompProfile",
		".spec.template.spec.containers.securityContext": "allowPrivilegeEscalation readOnlyRootFilesystem capabilities",
		".spec.template.spec.containers.resources":       "requests limits",
		".spec.template.spec.containers.readinessProbe":  "httpGet periodSeconds timeoutSeconds failureThreshold",
		".spec.template.spec.containers.livenessProbe":   "httpGet periodSeconds timeoutSeconds failureThreshold",
		".spec.template.spec.containers.startupProbe":    "httpGet periodSeconds timeoutSeconds failureThreshold",
		".spec.template.spec.containers.ports":           "name containerPort",
		".spec.template.spec.containers.env":             "name value valueFrom",
		".spec.template.spec.containers.volumeMounts":    "name mountPath readOnly",
		".spec.template.spec.volumes":                    "name emptyDir secret",
		".spec.template.spec.volumes.secret":             "secretName defaultMode",
		".spec.template.spec.topologySpreadConstraints":  "maxSkew topologyKey whenUnsatisfiable labelSelector",
		".spec.strategy":                                            "type rollingUpdate",
		".spec.strategy.rollingUpdate":                              "maxSurge maxUnavailable",
		".spec.selector.matchLabels":                                "app.kubernetes.io/name app.kubernetes.io/component",
		".spec.template.spec.containers.env.valueFrom":              "secretKeyRef",
		".spec.template.spec.containers.env.valueFrom.secretKeyRef": "name key",
	}
}

// checkKeys compares the keys of an object and of the objects in it with the list.
func checkKeys(t *testing.T, name, kind, path string, v any) {
	t.Helper()
	switch x := v.(type) {
	case []any:
		for _, one := range x {
			checkKeys(t, name, kind, path, one)
		}
	case object:
		known, ok := manifestKeys()[kind+path]
		if !ok {
			known, ok = manifestKeys()[path]
		}
		for key, child := range x {
			if ok && !slices.Contains(strings.Fields(known), key) {
				t.Errorf("%s: there is no %s%s.%s", name, kind, path, key)
			}
			checkKeys(t, name, kind, path+"."+key, child)
		}
	}
}

func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	versions := map[string]string{
		"Namespace": "v1", "ConfigMap": "v1", "Secret": "v1", "Service": "v1", "Job": "batch/v1", "Deployment": "apps/v1",
		"PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1", "Kustomization": "kustomize.config.k8s.io/v1beta1",
	}
	for name, o := range all {
		kind := fmt.Sprint(o["kind"])
		if want := versions[kind]; want == "" || o["apiVersion"] != want {
			t.Errorf("%s has the version %v, want %q", name, o["apiVersion"], want)
		}
		checkKeys(t, name, kind, "", o)
		if kind != "Namespace" && kind != "Kustomization" && at(o, "metadata.namespace") != "fiscalhub" {
			t.Errorf("%s is in no namespace", name)
		}
	}
	deployment, job := all["Deployment/fiscalhub"], all["Job/fiscalhub-migrate"]
	for name, o := range map[string]object{"Deployment": deployment, "Job": job} {
		for path, want := range map[string]any{
			"spec.template.spec.securityContext.runAsNonRoot": true, "spec.template.spec.securityContext.runAsUser": 65532,
			"spec.template.spec.securityContext.seccompProfile.type": "RuntimeDefault", "spec.template.spec.automountServiceAccountToken": false,
			"spec.template.spec.containers.0.securityContext.allowPrivilegeEscalation": false,
			"spec.template.spec.containers.0.securityContext.readOnlyRootFilesystem":   true,
			"spec.template.spec.containers.0.securityContext.capabilities.drop.0":      "ALL",
		} {
			if got := at(o, path); got != want {
				t.Errorf("%s: %s is %v, want %v", name, path, got, want)
			}
		}
	}
	labels := at(deployment, "spec.template.metadata.labels")
	for _, path := range []struct{ name, path string }{
		{"Deployment/fiscalhub", "spec.selector.matchLabels"}, {"Service/fiscalhub", "spec.selector"},
		{"PodDisruptionBudget/fiscalhub", "spec.selector.matchLabels"}, {"NetworkPolicy/fiscalhub", "spec.podSelector.matchLabels"},
	} {
		if got := at(all[path.name], path.path); fmt.Sprint(got) != fmt.Sprint(labels) {
			t.Errorf("%s selects %v, and the pods have %v", path.name, got, labels)
		}
	}
	if fmt.Sprint(at(job, "spec.template.metadata.labels")) == fmt.Sprint(labels) {
		t.Error("the service would send requests to the pod of the migration")
	}
	checkDeployment(t, all, deployment, job)
}

// checkDeployment checks how the Deployment, the Job and the Secrets fit together.
func checkDeployment(t *testing.T, all map[string]object, deployment, job object) {
	t.Helper()
	if n, ok := at(deployment, "spec.replicas").(int); !ok || n < 2 {
		t.Errorf("the Deployment has %v replicas", at(deployment, "spec.replicas"))
	}
	container := at(deployment, "spec.template.spec.containers.0")
	if args := fmt.Sprint(at(container, "args")); args != "[serve --no-migrate]" {
		t.Errorf("the Deployment runs %s", args)
	}
	if args := fmt.Sprint(at(job, "spec.template.spec.containers.0.args")); args != "[migrate]" {
		t.Errorf("the Job runs %s", args)
	}
	for probe, path := range map[string]string{"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/livez"} {
		if got := at(container, probe+".httpGet.path"); got != path {
			t.Errorf("the %s asks %v", probe, got)
		}
	}
	if mode := at(deployment, "spec.template.spec.volumes.1.secret.defaultMode"); mode != 0o440 {
		t.Errorf("the master key has the mode %v, want 0440: the service refuses others", mode)
	}
	for _, secret := range []struct{ name, key string }{{"fiscalhub-master-key", "master.key"}, {"fiscalhub-database", "service"}, {"fiscalhub-database", "migrator"}} {
		data, _ := at(all["Secret/"+secret.name], "stringData").(object)
		if data[secret.key] == nil {
			t.Errorf("the secret %s has no %s", secret.name, secret.key)
		}
	}
	for _, file := range at(all["Kustomization/<nil>"], "resources").([]any) {
		if _, err := os.Stat(filepath.Join("kubernetes", fmt.Sprint(file))); err != nil {
			t.Error(err)
		}
	}
}

func TestComposeFile(t *testing.T) {
	t.Parallel()
	text := read(t, "compose/compose.yaml")
	var file object
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields("image command restart environment volumes healthcheck depends_on ports read_only tmpfs cap_drop security_opt stop_grace_period")
	services, _ := file["services"].(object)
	if len(services) != 5 {
		t.Errorf("there are %d services", len(services))
	}
	volumes, _ := file["volumes"].(object)
	for name, v := range services {
		for key := range v.(object) {
			if !slices.Contains(keys, key) {
				t.Errorf("the service %s has the key %s", name, key)
			}
		}
		list, _ := at(v, "volumes").([]any)
		for _, volume := range list {
			from, _, _ := strings.Cut(fmt.Sprint(volume), ":")
			if _, ok := volumes[from]; ok {
				continue
			}
			if _, err := os.Stat(filepath.Join("compose", from)); err != nil {
				t.Errorf("the service %s mounts %s: %v", name, from, err)
			}
		}
		ports, _ := at(v, "ports").([]any)
		for _, port := range ports {
			if !strings.HasPrefix(fmt.Sprint(port), "127.0.0.1:") {
				t.Errorf("the service %s opens %v to the network", name, port)
			}
		}
	}
	example := string(read(t, "compose/env.example"))
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(example, m[1]+"=") {
			t.Errorf("env.example lacks %s", m[1])
		}
	}
}

// The metrics that the examples read are at the address that Prometheus asks.
func TestPrometheusAsksTheListenerOfTheMetrics(t *testing.T) {
	t.Parallel()
	if !bytes.Contains(read(t, "prometheus/prometheus.yml"), []byte("targets: [fiscalhub:9464]")) {
		t.Error("Prometheus asks another address")
	}
	for _, file := range []string{"compose/compose.yaml", "kubernetes/settings.yaml"} {
		if !bytes.Contains(read(t, file), []byte("FISCALHUB_METRICS_LISTEN: 0.0.0.0:9464")) {
			t.Errorf("%s has another listener", file)
		}
	}
}
