// The webhook of the other side: controller-runtime's webhook server and its typed defaulter, with
// the mutation of hack/bench/mutation.py.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	component = "kube-apiserver"
	sidecar   = "sidecar"
	wanted    = "--cloud-provider=external"
)

type mutator struct{}

// Default sets a flag, a label and a sidecar, each of which may exist.
func (mutator) Default(_ context.Context, deployment *appsv1.Deployment) error {
	template := &deployment.Spec.Template
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	template.Labels["bench"] = "true"
	containers := &template.Spec.Containers
	for i := range *containers {
		if container := &(*containers)[i]; container.Name == component {
			setFlag(&container.Args)
		}
	}
	added := corev1.Container{Name: sidecar, Image: "example.org/sidecar:v1", Args: []string{"--v=2"}}
	same := func(one corev1.Container) bool { return one.Name == sidecar }
	if at := slices.IndexFunc(*containers, same); at >= 0 {
		(*containers)[at] = added
	} else {
		*containers = append(*containers, added)
	}
	return nil
}

func setFlag(args *[]string) {
	flag, _, _ := strings.Cut(wanted, "=")
	same := func(one string) bool { return one == flag || strings.HasPrefix(one, flag+"=") }
	if at := slices.IndexFunc(*args, same); at >= 0 {
		(*args)[at] = wanted
	} else {
		*args = append(*args, wanted)
	}
}

func main() {
	health := flag.String("health-bind-address", "", "where /readyz is served")
	port := flag.Int("port", 0, "of the webhook")
	folder := flag.String("cert-dir", "", "with tls.crt and tls.key")
	path := flag.String("path", "", "of the webhook")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *folder})
	server.Register(*path, admission.WithDefaulter[*appsv1.Deployment](scheme, mutator{}))
	go func() {
		ready := healthz.CheckHandler{Checker: server.StartedChecker()}
		log.Fatal(http.ListenAndServe(*health, ready))
	}()
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
