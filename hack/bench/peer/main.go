// The other side of the benchmark: controller-runtime, making the API calls that Gardener's Go
// extension library makes in the life of an Infrastructure. Not a real extension.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Nothing per object is logged, which is to this side's advantage.
const onlyErrors = -1

func main() {
	health := flag.String("health-bind-address", "", "where /readyz is served")
	workers := flag.Int("max-concurrent-reconciles", 16, "concurrent reconciles")
	kind := flag.String("type", "bench", "spec.type of the objects to serve")
	flag.Parse() // --kubeconfig is controller-runtime's own flag
	if err := run(*health, *workers, *kind); err != nil {
		log.Fatal(err)
	}
}

func run(health string, workers int, kind string) error {
	ctrl.SetLogger(funcr.New(func(_, line string) { log.Print(line) }, funcr.Options{Verbosity: onlyErrors}))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // no client-side limit: machinery is compared, not defaults
	scheme := runtime.NewScheme()
	addToScheme(scheme)
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: health,
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Infrastructure{}, builder.WithPredicates(predicates(manager.GetClient(), kind))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{client: manager.GetClient()})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := startInformers(ctx, manager.GetCache()); err != nil {
		return err
	}
	synced := healthz.Checker(func(*http.Request) error {
		if manager.GetCache().WaitForCacheSync(ctx) {
			return nil
		}
		return errors.New("caches are not synced")
	})
	if err := manager.AddReadyzCheck("caches", synced); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// startInformers fills the caches that are only read from, before the clock runs.
func startInformers(ctx context.Context, caches cache.Cache) error {
	for _, obj := range []client.Object{&Cluster{}, &corev1.Namespace{}} {
		if _, err := caches.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	return nil
}
