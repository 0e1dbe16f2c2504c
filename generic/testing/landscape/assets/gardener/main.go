// Command gardener runs one component of Gardener: the one that its file name, or else its first
// argument, names. One binary for all components is a quarter of the size of six. With the argument
// "waits" it writes how long gardenlet waits for extensions.
package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	admissioncontroller "github.com/gardener/gardener/cmd/gardener-admission-controller/app"
	apiserver "github.com/gardener/gardener/cmd/gardener-apiserver/app"
	controllermanager "github.com/gardener/gardener/cmd/gardener-controller-manager/app"
	resourcemanager "github.com/gardener/gardener/cmd/gardener-resource-manager/app"
	scheduler "github.com/gardener/gardener/cmd/gardener-scheduler/app"
	gardenlet "github.com/gardener/gardener/cmd/gardenlet/app"
	apiserverfeatures "github.com/gardener/gardener/pkg/apiserver/features"
	controllermanagerfeatures "github.com/gardener/gardener/pkg/controllermanager/features"
	gardenletfeatures "github.com/gardener/gardener/pkg/gardenlet/features"
	schedulerfeatures "github.com/gardener/gardener/pkg/scheduler/features"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

type component struct {
	newCommand           func() *cobra.Command
	registerFeatureGates func()
}

var components = map[string]component{
	"gardener-admission-controller": {admissioncontroller.NewCommand, func() {}},
	"gardener-apiserver":            {apiserver.NewCommand, apiserverfeatures.RegisterFeatureGates},
	"gardener-controller-manager":   {controllermanager.NewCommand, controllermanagerfeatures.RegisterFeatureGates},
	"gardener-resource-manager":     {resourcemanager.NewCommand, func() {}},
	"gardener-scheduler":            {scheduler.NewCommand, schedulerfeatures.RegisterFeatureGates},
	"gardenlet":                     {gardenlet.NewCommand, gardenletfeatures.RegisterFeatureGates},
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, found := components[name]; !found && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	if name == "waits" {
		if err := writeWaits(os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	chosen, found := components[name]
	if !found {
		fmt.Fprintf(os.Stderr, "gardener: no component is named %q\n", name)
		os.Exit(2)
	}
	if address, err := netip.ParseAddr(os.Getenv("LANDSCAPE_RESOLVED")); err == nil {
		net.DefaultResolver = resolver(address)
	}
	chosen.registerFeatureGates()
	if err := chosen.newCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
