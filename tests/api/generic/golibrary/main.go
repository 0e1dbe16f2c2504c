// An extension on Gardener's Go library, as a program that does one reconciliation and ends: what a
// take-over starts from, and what continues on the way back. The Worker is that of provider-local.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/coreos/go-systemd/v22/unit"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/controlplane/genericactuator"
	"github.com/gardener/gardener/extensions/pkg/util"
	secretmanager "github.com/gardener/gardener/extensions/pkg/util/secret/manager"
	"github.com/gardener/gardener/extensions/pkg/webhook"
	"github.com/gardener/gardener/extensions/pkg/webhook/certificates"
	gardencontext "github.com/gardener/gardener/extensions/pkg/webhook/context"
	"github.com/gardener/gardener/extensions/pkg/webhook/controlplane/genericmutator"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/kubelet"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/utils"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/provider-local/apis/local/install"
	"github.com/gardener/gardener/pkg/provider-local/controller/worker"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"github.com/gardener/gardener/pkg/utils/imagevector"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
)

const (
	provider  = "provider-test"
	authority = "ca-provider-test"
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\ndata:\n  value: \"1\"\n"
)

type input struct {
	Namespace string
	CaBundle  []byte
	Configs   []extensionsv1alpha1.OperatingSystemConfig
	Port, Age int
}

// seed is the part of a manager that the generic actuators use.
type seed struct {
	manager.Manager
	config *rest.Config
	client client.Client
	scheme *runtime.Scheme
}

func (s seed) GetClient() client.Client    { return s.client }
func (s seed) GetAPIReader() client.Reader { return s.client }
func (s seed) GetConfig() *rest.Config     { return s.config }
func (s seed) GetScheme() *runtime.Scheme  { return s.scheme }

func main() {
	log.SetLogger(logr.Discard())
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, action string) error {
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 1000
	scheme := kubernetes.SeedScheme
	install.Install(scheme)
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	on := seed{config: config, client: c, scheme: scheme}
	switch action {
	case "controlplane":
		return reconcileControlPlane(ctx, on, given)
	case "worker":
		return reconcileWorker(ctx, on, given)
	case "webhooks":
		configs, _, err := webhookConfigs(on, given)
		if err != nil {
			return err
		}
		for _, one := range configs.GetWebhookConfigs() {
			if err := webhook.ReconcileSeedWebhookConfig(ctx, c, one, given.Namespace, given.CaBundle); err != nil {
				return err
			}
		}
		return nil
	case "managedresources":
		data := map[string][]byte{"part.yaml": fmt.Appendf(nil, configMap, "other", given.Namespace)}
		if err := managedresources.CreateForSeed(ctx, c, given.Namespace, "other-seed", false, data); err != nil {
			return err
		}
		return managedresources.CreateForShoot(ctx, c, given.Namespace, "other-shoot", provider, false, data)
	case "nodes":
		return mutateConfigs(ctx, on, given)
	case "serve":
		return serveWebhook(ctx, on, given)
	}
	return fmt.Errorf("unknown action %q", action)
}

func reconcileWorker(ctx context.Context, on seed, given input) error {
	cluster, err := extensions.GetCluster(ctx, on.client, given.Namespace)
	if err != nil {
		return err
	}
	found := &extensionsv1alpha1.Worker{}
	if err := on.client.Get(ctx, client.ObjectKey{Namespace: given.Namespace, Name: "worker"}, found); err != nil {
		return err
	}
	return worker.NewActuator(on, nil).Reconcile(ctx, logr.Discard(), found, cluster)
}

// part is a chart with one ConfigMap, in place of a chart that helm would render.
type part string

func (p part) Apply(context.Context, kubernetes.ChartApplier, string, imagevector.ImageVector, string, string, map[string]any) error {
	return nil
}

func (p part) Render(_ chartrenderer.Interface, namespace string, _ imagevector.ImageVector, _, _ string, _ map[string]any) (string, []byte, error) {
	return string(p), fmt.Appendf(nil, configMap, p, namespace), nil
}

func (p part) Delete(context.Context, client.Client, string) error { return nil }

func secretConfigs(string) []secretmanager.SecretConfigWithOptions {
	persist := []secretsmanager.GenerateOption{secretsmanager.Persist()}
	signed := []secretsmanager.GenerateOption{secretsmanager.SignedByCA(authority)}
	return []secretmanager.SecretConfigWithOptions{
		{Config: &secrets.CertificateSecretConfig{Name: authority, CommonName: authority, CertType: secrets.CACert}, Options: persist},
		{Config: &secrets.CertificateSecretConfig{Name: "server", CommonName: "server", DNSNames: []string{"server.local"}, CertType: secrets.ServerCert}, Options: signed},
		{Config: &secrets.BasicAuthSecretConfig{Name: "login", Format: secrets.BasicAuthFormatNormal, Username: "admin", PasswordLength: 32}, Options: persist},
		{Config: &secrets.RSASecretConfig{Name: "signing-key", Bits: 2048}, Options: persist},
		{Config: &secrets.RSASecretConfig{Name: "ssh-key", Bits: 2048, UsedForSSH: true}, Options: persist},
		{Config: &secrets.StaticTokenSecretConfig{Name: "tokens", Tokens: map[string]secrets.TokenConfig{"csi": {Username: "csi", UserID: "csi"}}}, Options: persist},
	}
}

func accessSecrets(namespace string) []*gardenerutils.AccessSecret {
	return []*gardenerutils.AccessSecret{gardenerutils.NewShootAccessSecret("csi", namespace)}
}

func reconcileControlPlane(ctx context.Context, on seed, given input) error {
	cluster, err := extensions.GetCluster(ctx, on.client, given.Namespace)
	if err != nil {
		return err
	}
	found := &extensionsv1alpha1.ControlPlane{}
	if err := on.client.Get(ctx, client.ObjectKey{Namespace: given.Namespace, Name: "x"}, found); err != nil {
		return err
	}
	_, inShoots, err := webhookConfigs(on, given)
	if err != nil {
		return err
	}
	shootWebhooks := &atomic.Value{}
	shootWebhooks.Store(&inShoots)
	actuator, err := genericactuator.NewActuator(on, provider, secretConfigs, accessSecrets,
		part(genericactuator.ControlPlaneSeedConfigurationChartResourceName),
		part(genericactuator.ControlPlaneSeedChartResourceName),
		part(genericactuator.ControlPlaneShootChartResourceName),
		part(genericactuator.ControlPlaneShootCRDsChartResourceName),
		part(genericactuator.StorageClassesChartResourceName),
		genericactuator.NoopValuesProvider{}, extensionscontroller.ChartRendererFactoryFunc(util.NewChartRendererForShoot), nil, "", shootWebhooks, given.Namespace)
	if err != nil {
		return err
	}
	_, err = actuator.Reconcile(ctx, logr.Discard(), found, cluster)
	return err
}

func webhookConfigs(on seed, given input) (webhook.Configs, webhook.Configs, error) {
	types := []webhook.Type{{Obj: &corev1.ConfigMap{}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"shoot.gardener.cloud/provider": given.Namespace}}
	webhooks := []*webhook.Webhook{
		{Action: webhook.ActionMutating, Name: "change", Path: "change", Target: webhook.TargetSeed, Types: types, NamespaceSelector: selector},
		{Action: webhook.ActionValidating, Name: "check", Path: "check", Target: webhook.TargetSeed, Types: types, NamespaceSelector: selector},
		{Action: webhook.ActionMutating, Name: "shoot", Path: "shoot", Target: webhook.TargetShoot, Types: types},
	}
	return webhook.BuildWebhookConfigs(webhooks, on.client, given.Namespace, given.Namespace, false, 443, webhook.ModeService, "", given.CaBundle, false)
}

// ensurer changes nodes as the extensions of Gardener's providers do.
type ensurer struct{ genericmutator.NoopEnsurer }

func (ensurer) EnsureKubeletServiceUnitOptions(_ context.Context, _ gardencontext.GardenContext, _ *semver.Version, options, _ []*unit.UnitOption) ([]*unit.UnitOption, error) {
	if option := webhook.UnitOptionWithSectionAndName(options, "Service", "ExecStart"); option != nil {
		command := webhook.DeserializeCommandLine(option.Value)
		command = webhook.EnsureStringWithPrefix(command, "--cloud-provider=", "external")
		option.Value = webhook.SerializeCommandLine(command, 1, " \\\n    ")
	}
	added := &unit.UnitOption{Section: "Service", Name: "ExecStartPre", Value: `/bin/sh -c 'hostnamectl set-hostname "$(hostname -f)"'`}
	return webhook.EnsureUnitOption(options, added), nil
}

func (ensurer) EnsureKubeletConfiguration(_ context.Context, _ gardencontext.GardenContext, _ *semver.Version, config, _ *kubeletconfigv1beta1.KubeletConfiguration) error {
	yes := true
	config.EnableControllerAttachDetach = &yes
	if config.FeatureGates == nil {
		config.FeatureGates = map[string]bool{}
	}
	config.FeatureGates["Added"] = true
	return nil
}

// mutateConfigs prints the configs as gardenlet writes them, and as the extension changes them.
func mutateConfigs(ctx context.Context, on seed, given input) error {
	inline := utils.NewFileContentInlineCodec()
	codec := kubelet.NewConfigCodec(inline)
	mutator := genericmutator.NewMutator(on, &ensurer{}, utils.NewUnitSerializer(), codec, inline, logr.Discard())
	for i := range given.Configs {
		for _, file := range given.Configs[i].Spec.Files {
			config, err := codec.Decode(file.Content.Inline)
			if err != nil {
				return err
			}
			written, err := codec.Encode(config, file.Content.Inline.Encoding)
			if err != nil {
				return err
			}
			*file.Content.Inline = *written
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(given.Configs); err != nil {
		return err
	}
	for i := range given.Configs {
		if err := mutator.Mutate(ctx, &given.Configs[i], nil); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(given.Configs)
}

// earlier is a clock that is behind.
type earlier struct {
	clock.RealClock
	by time.Duration
}

func (e earlier) Now() time.Time { return time.Now().Add(-e.by) }

// label is a webhook that shows that this program answered.
func label(_ context.Context, request admission.Request) admission.Response {
	object := map[string]any{}
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return admission.Errored(400, err)
	}
	object["metadata"].(map[string]any)["labels"] = map[string]string{"served-by": "go"}
	changed, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(500, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

// serveWebhook serves a webhook with the certificates of the library until standard input ends. They were issued
// Age days ago.
func serveWebhook(ctx context.Context, on seed, given input) error {
	secrets.Clock = earlier{by: time.Duration(given.Age) * 24 * time.Hour}
	folder, err := os.MkdirTemp("", "webhook-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	url := fmt.Sprintf("127.0.0.1:%d", given.Port)
	types := []webhook.Type{{Obj: &extensionsv1alpha1.Network{}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: given.Namespace}}
	change := &webhook.Webhook{Action: webhook.ActionMutating, Name: "change", Path: "change", Target: webhook.TargetSeed, Types: types, NamespaceSelector: selector}
	configs, _, err := webhook.BuildWebhookConfigs([]*webhook.Webhook{change}, on.client, given.Namespace, given.Namespace, false, given.Port, webhook.ModeURL, url, nil, false)
	if err != nil {
		return err
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: "127.0.0.1", Port: given.Port, CertDir: folder})
	server.Register("/change", &admission.Webhook{Handler: admission.HandlerFunc(label)})
	mgr, err := manager.New(on.config, manager.Options{Scheme: on.scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := certificates.AddCertificateManagementToManager(ctx, mgr, nil, secrets.Clock, configs, nil, nil, nil, "", given.Namespace, false, given.Namespace, webhook.ModeURL, url); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return mgr.Start(ctx)
}
