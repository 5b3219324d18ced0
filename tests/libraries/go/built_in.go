package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admission/install"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/extensions/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/imagepolicy/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
)

// strategy is how the objects of a kind are prepared and judged, and how their status is.
type strategy struct {
	main interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
	}
	status rest.RESTUpdateStrategy
}

// strategies has those of built-in kinds, by group and kind. They are asked without a cluster: what they would look up is not there.
var strategies = map[string]strategy{
	"/ConfigMap":             {configmap.Strategy, nil},
	"/Endpoints":             {endpoint.Strategy, nil},
	"/Event":                 {event.Strategy, nil},
	"/LimitRange":            {limitrange.Strategy, nil},
	"/Namespace":             {namespace.Strategy, namespace.StatusStrategy},
	"/Node":                  {node.Strategy, node.StatusStrategy},
	"/PersistentVolume":      {persistentvolume.Strategy, persistentvolume.StatusStrategy},
	"/PersistentVolumeClaim": {persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy},
	"/Pod":                   {pod.Strategy, pod.StatusStrategy},
	"/PodTemplate":           {podtemplate.Strategy, nil},
	"/ReplicationController": {replicationcontroller.Strategy, replicationcontroller.StatusStrategy},
	"/ResourceQuota":         {resourcequota.Strategy, resourcequota.StatusStrategy},
	"/Secret":                {secret.Strategy, nil},
	"/Service":               {service.Strategy, service.StatusStrategy},
	"/ServiceAccount":        {serviceaccount.Strategy, nil},
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":     {mutatingwebhookconfiguration.Strategy, nil},
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        {validatingadmissionpolicy.NewStrategy(nil, nil), nil},
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": {validatingadmissionpolicybinding.NewStrategy(nil, nil, nil), nil},
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   {validatingwebhookconfiguration.Strategy, nil},
	"apps/ControllerRevision":                                       {controllerrevision.Strategy, nil},
	"apps/DaemonSet":                                                {daemonset.Strategy, daemonset.StatusStrategy},
	"apps/Deployment":                                               {deployment.Strategy, deployment.StatusStrategy},
	"apps/ReplicaSet":                                               {replicaset.Strategy, replicaset.StatusStrategy},
	"apps/StatefulSet":                                              {statefulset.Strategy, statefulset.StatusStrategy},
	"autoscaling/HorizontalPodAutoscaler":                           {horizontalpodautoscaler.Strategy, horizontalpodautoscaler.StatusStrategy},
	"batch/CronJob":                                                 {cronjob.Strategy, cronjob.StatusStrategy},
	"batch/Job":                                                     {job.Strategy, job.StatusStrategy},
	"certificates.k8s.io/CertificateSigningRequest":                 {certificates.Strategy, certificates.StatusStrategy},
	"coordination.k8s.io/Lease":                                     {lease.Strategy, nil},
	"discovery.k8s.io/EndpointSlice":                                {endpointslice.Strategy, nil},
	"flowcontrol.apiserver.k8s.io/FlowSchema":                       {flowschema.Strategy, flowschema.StatusStrategy},
	"flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration":       {prioritylevelconfiguration.Strategy, prioritylevelconfiguration.StatusStrategy},
	"networking.k8s.io/IPAddress":                                   {ipaddress.Strategy, nil},
	"networking.k8s.io/Ingress":                                     {ingress.Strategy, ingress.StatusStrategy},
	"networking.k8s.io/IngressClass":                                {ingressclass.Strategy, nil},
	"networking.k8s.io/NetworkPolicy":                               {networkpolicy.Strategy, nil},
	"networking.k8s.io/ServiceCIDR":                                 {servicecidr.Strategy, servicecidr.StatusStrategy},
	"node.k8s.io/RuntimeClass":                                      {runtimeclass.Strategy, nil},
	"policy/PodDisruptionBudget":                                    {poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy},
	"rbac.authorization.k8s.io/ClusterRole":                         {clusterrole.Strategy, nil},
	"rbac.authorization.k8s.io/ClusterRoleBinding":                  {clusterrolebinding.Strategy, nil},
	"rbac.authorization.k8s.io/Role":                                {role.Strategy, nil},
	"rbac.authorization.k8s.io/RoleBinding":                         {rolebinding.Strategy, nil},
	"resource.k8s.io/DeviceClass":                                   {deviceclass.Strategy, nil},
	"resource.k8s.io/ResourceClaim":                                 {resourceclaim.NewStrategy(nil, nil), nil},
	"resource.k8s.io/ResourceClaimTemplate":                         {resourceclaimtemplate.NewStrategy(nil), nil},
	"resource.k8s.io/ResourceSlice":                                 {resourceslice.Strategy, nil},
	"scheduling.k8s.io/PriorityClass":                               {priorityclass.Strategy, nil},
	"storage.k8s.io/CSIDriver":                                      {csidriver.Strategy, nil},
	"storage.k8s.io/CSINode":                                        {csinode.Strategy, nil},
	"storage.k8s.io/CSIStorageCapacity":                             {csistoragecapacity.Strategy, nil},
	"storage.k8s.io/StorageClass":                                   {storageclass.Strategy, nil},
	"storage.k8s.io/VolumeAttachment":                               {volumeattachment.Strategy, volumeattachment.StatusStrategy},
	"storage.k8s.io/VolumeAttributesClass":                          {volumeattributesclass.Strategy, nil},
}

type stored struct {
	New    json.RawMessage `json:"new"`
	Old    json.RawMessage `json:"old"`
	Status bool            `json:"status"`
}

// builtIn says what becomes of an object of a built-in kind that is created, or that replaces another, or whose status does.
func builtIn(asked stored) any {
	var said metav1.TypeMeta
	if err := json.Unmarshal(asked.New, &said); err != nil {
		return none(err)
	}
	capabilities.Setup(true, 0)
	of := said.GroupVersionKind()
	how, known := strategies[of.Group+"/"+of.Kind]
	if !known || !legacyscheme.Scheme.Recognizes(of) {
		return none("no strategy")
	}
	made, err := internal(asked.New)
	if err != nil {
		return map[string]any{"undecodable": true}
	}
	ctx := request.WithUser(context.Background(), &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	ctx = request.WithNamespace(ctx, metav1.NamespaceNone)
	if how.main.NamespaceScoped() {
		ctx = request.WithNamespace(ctx, metav1.NamespaceDefault)
	}
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: of.Group, APIVersion: of.Version})
	if len(asked.Old) == 0 || string(asked.Old) == "null" {
		begin(made)
		err := rest.BeforeCreate(how.main, ctx, made)
		return outcome(made, of, err, func() []string { return how.main.WarningsOnCreate(ctx, made) })
	}
	if of.Kind == "Service" && !asked.Status {
		return none("addresses are allocated before it is judged")
	}
	old, err := internal(asked.Old)
	if err != nil {
		return none(err)
	}
	begin(old)
	if err := rest.BeforeCreate(how.main, ctx, old); err != nil {
		return none(err)
	}
	// What is stored has been read once.
	encoded, err := runtime.Encode(storing(of), old)
	if err != nil {
		return none(err)
	}
	if old, err = internal(encoded); err != nil {
		return none(err)
	}
	for _, object := range []runtime.Object{old, made} {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return none(err)
		}
		accessor.SetResourceVersion("1")
	}
	var by rest.RESTUpdateStrategy = how.main
	if asked.Status {
		if how.status == nil {
			return none("no status")
		}
		by = how.status
	}
	err = rest.BeforeUpdate(by, ctx, made, old)
	return outcome(made, of, err, func() []string { return by.WarningsOnUpdate(ctx, made, old) })
}

// begin sets the metadata that only a server sets, as no two cases have it alike.
func begin(object runtime.Object) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetUID("u")
		accessor.SetCreationTimestamp(metav1.NewTime(created))
	}
}

// internal decodes an object, and fills in what it leaves out.
func internal(raw json.RawMessage) (runtime.Object, error) {
	return runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), raw)
}

// storing encodes objects of a kind as they are stored.
func storing(of schema.GroupVersionKind) runtime.Codec {
	stored := of.GroupVersion()
	if of.Kind == "HorizontalPodAutoscaler" {
		stored.Version = "v2"
	}
	return legacyscheme.Codecs.LegacyCodec(stored)
}

// outcome is what is wrong, or the object, without what is of the moment, and what it is warned of.
func outcome(made runtime.Object, of schema.GroupVersionKind, err error, warnings func() []string) any {
	if err != nil {
		var status *apierrors.StatusError
		if !errors.As(err, &status) || status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
			return refused(err)
		}
		found := []string{}
		for _, cause := range status.ErrStatus.Details.Causes {
			// What is different between two pods is told of their structs.
			message, _, _ := strings.Cut(cause.Message, "\n@@")
			found = append(found, strings.TrimPrefix(cause.Field+": "+message, "<nil>: "))
		}
		return map[string]any{"errors": found}
	}
	told := append([]string{}, warnings()...)
	accessor, err := meta.Accessor(made)
	if err != nil {
		return none(err)
	}
	accessor.SetUID("")
	accessor.SetCreationTimestamp(metav1.Time{})
	accessor.SetManagedFields(nil)
	codec := legacyscheme.Codecs.LegacyCodec(of.GroupVersion())
	encoded, err := runtime.Encode(storing(of), made)
	if err != nil {
		return none(err)
	}
	// What is answered has been read from the store.
	if made, err = internal(encoded); err != nil {
		return none(err)
	}
	if encoded, err = runtime.Encode(codec, made); err != nil {
		return none(err)
	}
	var object any
	if err := json.Unmarshal(encoded, &object); err != nil {
		return none(err)
	}
	return map[string]any{"object": timeless(object), "warnings": told}
}

// created is when every object was.
var created = time.Date(2025, 6, 7, 8, 9, 10, 0, time.UTC)

// timeless is a value without the times of this day, and without that one.
func timeless(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			value[key] = timeless(member)
		}
	case []any:
		for at, item := range value {
			value[at] = timeless(item)
		}
	case string:
		if at, err := time.Parse(time.RFC3339, value); err == nil && (at.Equal(created) || time.Since(at).Abs() < 24*time.Hour) {
			return "now"
		}
	}
	return value
}
