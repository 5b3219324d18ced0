"""A round with the official Python client: built-in and custom resources, created, watched, applied, deleted."""
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

config.load_kube_config()
api = client.ApiClient()
core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
NAMESPACE = "default"


def refused(status, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as error:
        assert error.status == status, error
        return error
    raise AssertionError("must be refused")


def watch_config_maps(since, seen):
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, label_selector="round=python", resource_version=since,
        timeout_seconds=60)
    for event in stream:
        seen.append((event["type"], (event["object"].data or {}).get("step")))
        if event["type"] == "DELETED":
            return


# Whenever the watch begins, it tells of everything since.
since = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
seen = []
watcher = threading.Thread(target=watch_config_maps, args=(since, seen), daemon=True)
watcher.start()

# Create, read, replace with a conflict, patch.
made = core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(
    metadata=client.V1ObjectMeta(name="round", labels={"round": "python"}), data={"step": "created"}))
assert made.metadata.uid and made.metadata.managed_fields[0].manager == "OpenAPI-Generator", made.metadata
assert refused(409, core.create_namespaced_config_map, NAMESPACE, made.__class__(
    metadata=client.V1ObjectMeta(name="round"))).reason == "Conflict"
core.patch_namespaced_config_map("round", NAMESPACE, {"data": {"step": "patched"}})
refused(409, core.replace_namespaced_config_map, "round", NAMESPACE, made)
refused(404, core.read_namespaced_config_map, "missing", NAMESPACE)

# Server-side apply through the dynamic client, and its conflict.
resources = dynamic.DynamicClient(api)
config_maps = resources.resources.get(api_version="v1", kind="ConfigMap")
manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "round"}, "data": {"step": "applied"}}
conflict = refused(409, config_maps.server_side_apply, body=manifest, name="round", namespace=NAMESPACE,
                   field_manager="round")
assert ".data.step" in conflict.body, conflict.body
applied = config_maps.server_side_apply(body=manifest, name="round", namespace=NAMESPACE, field_manager="round",
                                        force_conflicts=True)
assert applied.data.step == "applied"

# A Deployment becomes available on a simulated node; its scale is read and set.
labels = {"app": "web"}
apps.create_namespaced_deployment(NAMESPACE, client.V1Deployment(
    metadata=client.V1ObjectMeta(name="web"),
    spec=client.V1DeploymentSpec(
        replicas=1, selector=client.V1LabelSelector(match_labels=labels),
        template=client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels=labels),
            spec=client.V1PodSpec(containers=[client.V1Container(name="web", image="nginx")])))))
for event in watch.Watch().stream(apps.list_namespaced_deployment, NAMESPACE, timeout_seconds=60):
    if event["object"].status.available_replicas == 1:
        break
else:
    raise AssertionError("the Deployment never became available")
apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 2}})
assert apps.read_namespaced_deployment_scale("web", NAMESPACE).spec.replicas == 2
apps.delete_namespaced_deployment("web", NAMESPACE)

# A custom resource, defined, created, refused by its schema, and deleted with its definition.
extensions = client.ApiextensionsV1Api(api)
extensions.create_custom_resource_definition(client.V1CustomResourceDefinition(
    metadata=client.V1ObjectMeta(name="boats.python.example.com"),
    spec=client.V1CustomResourceDefinitionSpec(
        group="python.example.com", scope="Namespaced",
        names=client.V1CustomResourceDefinitionNames(plural="boats", kind="Boat"),
        versions=[client.V1CustomResourceDefinitionVersion(
            name="v1", served=True, storage=True,
            schema=client.V1CustomResourceValidation(open_apiv3_schema=client.V1JSONSchemaProps(
                type="object", properties={"spec": client.V1JSONSchemaProps(
                    type="object", properties={"sails": client.V1JSONSchemaProps(type="integer")})})))])))
custom = client.CustomObjectsApi(api)
place = ("python.example.com", "v1", NAMESPACE, "boats")
boat = {"apiVersion": "python.example.com/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {"sails": 2}}
custom.create_namespaced_custom_object(*place, boat)
refused(422, custom.create_namespaced_custom_object, *place,
        {**boat, "metadata": {"name": "b"}, "spec": {"sails": "two"}})
assert custom.get_namespaced_custom_object(*place, "a")["spec"]["sails"] == 2
extensions.delete_custom_resource_definition("boats.python.example.com")

core.delete_namespaced_config_map("round", NAMESPACE)
watcher.join(30)
assert seen == [("ADDED", "created"), ("MODIFIED", "patched"), ("MODIFIED", "applied"), ("DELETED", "applied")], seen
print("done")
