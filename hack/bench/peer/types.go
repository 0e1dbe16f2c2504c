package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "extensions.gardener.cloud", Version: "v1alpha1"}

// Infrastructure has the fields of Gardener's type that the calls need, and no others.
type Infrastructure struct {
	v1.TypeMeta   `json:",inline"`
	v1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InfrastructureSpec   `json:"spec"`
	Status InfrastructureStatus `json:"status,omitempty"`
}

type InfrastructureSpec struct {
	Type           string                `json:"type"`
	Class          *string               `json:"class,omitempty"`
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	Region         string                `json:"region"`
}

type InfrastructureStatus struct {
	LastOperation      *LastOperation        `json:"lastOperation,omitempty"`
	LastError          *LastError            `json:"lastError,omitempty"`
	ObservedGeneration int64                 `json:"observedGeneration,omitempty"`
	ProviderStatus     *runtime.RawExtension `json:"providerStatus,omitempty"`
}

type LastOperation struct {
	Description    string  `json:"description"`
	LastUpdateTime v1.Time `json:"lastUpdateTime"`
	Progress       int32   `json:"progress"`
	State          string  `json:"state"`
	Type           string  `json:"type"`
}

type LastError struct {
	Description string `json:"description"`
}

type InfrastructureList struct {
	v1.TypeMeta `json:",inline"`
	v1.ListMeta `json:"metadata,omitempty"`
	Items       []Infrastructure `json:"items"`
}

// Cluster embeds a Shoot as it is in the garden.
type Cluster struct {
	v1.TypeMeta   `json:",inline"`
	v1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSpec `json:"spec"`
}

type ClusterSpec struct {
	CloudProfile runtime.RawExtension `json:"cloudProfile"`
	Seed         runtime.RawExtension `json:"seed"`
	Shoot        runtime.RawExtension `json:"shoot"`
}

type ClusterList struct {
	v1.TypeMeta `json:",inline"`
	v1.ListMeta `json:"metadata,omitempty"`
	Items       []Cluster `json:"items"`
}

// Shoot is what is read of the embedded one.
type Shoot struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		LastOperation *LastOperation `json:"lastOperation"`
	} `json:"status"`
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion,
		&Infrastructure{}, &InfrastructureList{}, &Cluster{}, &ClusterList{})
	v1.AddToGroupVersion(scheme, groupVersion)
}

func (in *Infrastructure) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.Class != nil {
		class := *in.Spec.Class
		out.Spec.Class = &class
	}
	out.Spec.ProviderConfig = in.Spec.ProviderConfig.DeepCopy()
	out.Status.ProviderStatus = in.Status.ProviderStatus.DeepCopy()
	if in.Status.LastOperation != nil {
		last := *in.Status.LastOperation
		out.Status.LastOperation = &last
	}
	if in.Status.LastError != nil {
		last := *in.Status.LastError
		out.Status.LastError = &last
	}
	return &out
}

func (in *InfrastructureList) DeepCopyObject() runtime.Object {
	out := &InfrastructureList{TypeMeta: in.TypeMeta, Items: make([]Infrastructure, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Infrastructure)
	}
	return out
}

func (in *Cluster) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.CloudProfile.DeepCopyInto(&out.Spec.CloudProfile)
	in.Spec.Seed.DeepCopyInto(&out.Spec.Seed)
	in.Spec.Shoot.DeepCopyInto(&out.Spec.Shoot)
	return &out
}

func (in *ClusterList) DeepCopyObject() runtime.Object {
	out := &ClusterList{TypeMeta: in.TypeMeta, Items: make([]Cluster, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Cluster)
	}
	return out
}
