package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/gardener/gardener/pkg/component/extensions/backupentry"
	"github.com/gardener/gardener/pkg/component/extensions/containerruntime"
	"github.com/gardener/gardener/pkg/component/extensions/controlplane"
	"github.com/gardener/gardener/pkg/component/extensions/dnsrecord"
	"github.com/gardener/gardener/pkg/component/extensions/extension"
	"github.com/gardener/gardener/pkg/component/extensions/infrastructure"
	"github.com/gardener/gardener/pkg/component/extensions/network"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/component/extensions/worker"
)

// waits has, by kind, how long gardenlet tolerates an error of an object, and how long it waits.
var waits = map[string][]time.Duration{
	"BackupEntry":           {backupentry.DefaultSevereThreshold, backupentry.DefaultTimeout},
	"ContainerRuntime":      {containerruntime.DefaultSevereThreshold, containerruntime.DefaultTimeout},
	"ControlPlane":          {controlplane.DefaultSevereThreshold, controlplane.DefaultTimeout},
	"DNSRecord":             {dnsrecord.DefaultSevereThreshold, dnsrecord.DefaultTimeout},
	"Extension":             {extension.DefaultSevereThreshold, extension.DefaultTimeout},
	"Infrastructure":        {infrastructure.DefaultSevereThreshold, infrastructure.DefaultTimeout},
	"Network":               {network.DefaultSevereThreshold, network.DefaultTimeout},
	"OperatingSystemConfig": {operatingsystemconfig.DefaultSevereThreshold, operatingsystemconfig.DefaultTimeout},
	"Worker":                {worker.DefaultSevereThreshold, worker.DefaultTimeout},
}

// writeWaits writes them as one JSON object, in seconds.
func writeWaits(out io.Writer) error {
	inSeconds := map[string][]float64{}
	for kind, durations := range waits {
		for _, duration := range durations {
			inSeconds[kind] = append(inSeconds[kind], duration.Seconds())
		}
	}
	return json.NewEncoder(out).Encode(inSeconds)
}
