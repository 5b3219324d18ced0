use serde_json::{Value, json};

use super::super::{Encoding, Maker, Schema};

const DEFINITION: &str = "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

/// An object of the type, whose name is without "io.k8s.".
fn decoded(of: &str, mut object: Value) -> Result<(Value, Vec<String>), String> {
    let unknown = Schema::built_in(format!("io.k8s.{of}")).decode(&mut object)?;
    Ok((object, unknown))
}

fn kept(of: &str, object: Value) -> Value {
    decoded(of, object).unwrap().0
}

fn error(of: &str, object: Value) -> String {
    decoded(of, object).unwrap_err()
}

#[test]
fn unknown_fields_are_removed_and_told_by_their_path() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "lables": {}}, "other": 1,
        "spec": {"containers": [{"name": "c", "foo": 1, "resources": {"limits": {"cpu": 1}, "x": 1}}]}});
    let (object, unknown) = decoded("api.core.v1.Pod", pod).unwrap();
    assert_eq!(
        unknown,
        ["metadata.lables", "other", "spec.containers[0].foo", "spec.containers[0].resources.x"]
    );
    assert_eq!(
        object,
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}, "status": {}})
    );
}

#[test]
fn wrong_types_are_told_in_the_words_of_go() {
    let prefix = "json: cannot unmarshal";
    assert_eq!(
        error("api.core.v1.ConfigMap", json!({"data": "x"})),
        format!("{prefix} string into Go struct field ConfigMap.data of type map[string]string")
    );
    assert_eq!(
        error("api.core.v1.ConfigMap", json!({"data": {"a": 1}})),
        format!("{prefix} number into Go struct field ConfigMap.data of type string")
    );
    assert_eq!(
        error("api.apps.v1.Deployment", json!({"spec": {"replicas": "three"}})),
        format!("{prefix} string into Go struct field DeploymentSpec.spec.replicas of type int32")
    );
    assert_eq!(
        error("api.apps.v1.Deployment", json!({"spec": {"replicas": 1.5}})),
        format!("{prefix} number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32")
    );
    assert_eq!(
        error("api.apps.v1.Deployment", json!({"spec": {"replicas": 3_000_000_000_u32}})),
        format!("{prefix} number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32")
    );
    assert_eq!(
        error("api.core.v1.Pod", json!({"spec": {"hostNetwork": "true"}})),
        format!("{prefix} string into Go struct field PodSpec.spec.hostNetwork of type bool")
    );
    assert_eq!(
        error("api.core.v1.Pod", json!({"metadata": {"labels": {"a": 5}}})),
        format!("{prefix} number into Go struct field ObjectMeta.metadata.labels of type string")
    );
    assert_eq!(
        error("api.core.v1.Pod", json!({"spec": {"containers": {"name": "c"}}})),
        format!("{prefix} object into Go struct field PodSpec.spec.containers of type []v1.Container")
    );
    assert_eq!(
        error(
            "api.apps.v1.Deployment",
            json!({"spec": {"template": {"spec": {"containers": [{"ports": [{"containerPort": "http"}]}]}}}})
        ),
        format!(
            "{prefix} string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32"
        )
    );
    assert_eq!(
        error("api.core.v1.Pod", json!({"spec": []})),
        format!("{prefix} array into Go struct field Pod.spec of type v1.PodSpec")
    );
    assert_eq!(error("api.core.v1.Pod", json!([])), format!("{prefix} array into Go value of type v1.Pod"));
    assert_eq!(
        error("api.core.v1.Service", json!({"spec": {"ports": [{"targetPort": true}]}})),
        format!("{prefix} bool into Go struct field ServicePort.spec.ports.targetPort of type int32")
    );
}

#[test]
fn null_is_as_good_as_absent() {
    let pod = json!({"metadata": {"name": "a", "creationTimestamp": null, "labels": {"x": null}},
        "spec": {"nodeName": null, "containers": [{"name": "c", "args": ["a", null]}, null]}, "status": null});
    assert_eq!(
        kept("api.core.v1.Pod", pod),
        json!({"metadata": {"name": "a", "labels": {"x": ""}}, "status": {}, "spec": {"containers": [
            {"name": "c", "args": ["a", ""], "resources": {}}, {"name": "", "resources": {}}]}})
    );
}

#[test]
fn empty_lists_and_maps_that_are_told_from_none_stay_and_other_empty_maps_are_absent() {
    let csi = json!({"driver": "d", "volumeAttributes": {}});
    let pod = json!({"metadata": {"name": "a", "labels": {}, "finalizers": []},
        "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}, "csi": csi}], "nodeSelector": {}}});
    assert_eq!(
        kept("api.core.v1.Pod", pod),
        json!({"metadata": {"name": "a", "labels": {}, "finalizers": []}, "status": {},
            "spec": {"containers": [], "nodeSelector": {},
                "volumes": [{"name": "v", "emptyDir": {}, "csi": {"driver": "d"}}]}})
    );
}

#[test]
fn what_converts_finds_the_first_wrong_field_in_the_order_of_structs() {
    let status = json!({"currentReplicas": 1.5, "lastScaleTime": "x"});
    let mut sent = json!({"metadata": {}, "status": status});
    let schema = Schema::built_in("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler");
    let why = schema.decode_made(&mut sent, Maker::Merge).expect_err("no status");
    assert!(why.contains("parsing time"), "{why}");
}

#[test]
fn quantities_are_text_or_numbers_and_become_canonical() {
    let pod = |cpu: Value| {
        json!({"metadata": {}, "status": {},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
    };
    for (given, written) in
        [(json!("0.5"), "500m"), (json!(2), "2"), (json!(0.1), "100m"), (json!("1Gi"), "1Gi")]
    {
        assert_eq!(kept("api.core.v1.Pod", pod(given)), pod(written.into()));
    }
    let why = error("api.core.v1.Pod", pod(json!("lots")));
    assert_eq!(
        why,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
    assert_eq!(error("api.core.v1.Pod", pod(json!(true))), why);
}

#[test]
fn parts_of_a_second_stay_until_they_are_written_where_rules_compare_times() {
    let status = |time: &str| json!({"metadata": {}, "spec": {}, "status": {"startTime": time}});
    let schema = Schema::built_in("io.k8s.api.batch.v1.Job");
    let mut sent = status("2026-01-01T02:00:00.1200+02:00");
    schema.decode_made(&mut sent, Maker::Client).expect("a job");
    assert_eq!(sent["status"]["startTime"], "2026-01-01T00:00:00.12Z");
    for encoding in [Encoding::Json, Encoding::Protobuf, Encoding::Owned] {
        assert_eq!(schema.written(&sent, encoding)["status"]["startTime"], "2026-01-01T00:00:00Z");
    }
    schema.decode(&mut sent).expect("a job");
    assert_eq!(sent["status"]["startTime"], "2026-01-01T00:00:00Z");
}

#[test]
fn times_are_checked_and_written_in_utc() {
    let named = |time: &str| json!({"metadata": {"deletionTimestamp": time}});
    assert_eq!(
        kept("api.core.v1.ConfigMap", named("2024-01-01T02:00:00+02:00")),
        named("2024-01-01T00:00:00Z")
    );
    assert_eq!(
        error("api.core.v1.ConfigMap", named("x")),
        r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#
    );
    let lease = |time: &str| json!({"metadata": {}, "spec": {"renewTime": time}});
    assert_eq!(
        kept("api.coordination.v1.Lease", lease("2024-01-01T00:00:00.000001Z")),
        lease("2024-01-01T00:00:00.000001Z")
    );
    assert!(
        error("api.coordination.v1.Lease", lease("2024-01-01T00:00:00Z"))
            .ends_with(r#"cannot parse "Z" as ".000000""#)
    );
}

#[test]
fn bytes_are_base64() {
    let secret = |text: &str| json!({"metadata": {}, "data": {"a": text}});
    assert_eq!(kept("api.core.v1.Secret", secret("aGk=")), secret("aGk="));
    assert_eq!(error("api.core.v1.Secret", secret("***")), "illegal base64 data at input byte 0");
}

#[test]
fn bytes_may_be_a_list_of_numbers() {
    let secret = |bytes: Value| json!({"metadata": {}, "data": {"a": bytes}});
    assert_eq!(kept("api.core.v1.Secret", secret(json!([104, 105]))), secret(json!("aGk=")));
    assert_eq!(kept("api.core.v1.Secret", secret(json!([104, null]))), secret(json!("aAA=")));
    assert_eq!(kept("api.core.v1.Secret", secret(json!([]))), secret(json!("")));
    assert_eq!(
        error("api.core.v1.Secret", secret(json!(["a"]))),
        "json: cannot unmarshal string into Go struct field Secret.data of type uint8"
    );
}

#[test]
fn ports_are_numbers_or_names() {
    let service = |port: Value| {
        json!({"metadata": {}, "status": {"loadBalancer": {}},
        "spec": {"ports": [{"port": 80, "targetPort": port}]}})
    };
    for port in [json!(80), json!("http")] {
        assert_eq!(kept("api.core.v1.Service", service(port.clone())), service(port));
    }
}

#[test]
fn the_schemas_of_definitions_keep_what_they_are_made_of() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "array", "items": {"type": "string"}, "default": [null, {"x": []}]},
        "b": {"type": "object", "additionalProperties": {"type": "integer"}},
        "c": {"type": "object", "additionalProperties": true, "x-kubernetes-preserve-unknown-fields": true}}});
    let definition = |schema: Value| json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
    let at = "/spec/versions/0/schema";
    assert_eq!(kept(DEFINITION, definition(schema.clone())).pointer(at), definition(schema).pointer(at));
    let bad = definition(json!({"properties": {"a": {"additionalProperties": "x"}}}));
    assert_eq!(error(DEFINITION, bad), "boolean or JSON schema expected");
    let (_, unknown) = decoded(DEFINITION, definition(json!({"typ": "object"}))).unwrap();
    assert_eq!(unknown, ["spec.versions[0].schema.openAPIV3Schema.typ"]);
}

#[test]
fn raw_values_are_left_alone() {
    let revision = json!({"revision": 0, "data": {"spec": {"a": null, "b": []}}, "metadata": {"managedFields": [{"fieldsV1": {"f:a": {}}}]}});
    assert_eq!(kept("api.apps.v1.ControllerRevision", revision.clone()), revision);
}

#[test]
fn deep_and_wide_objects_are_read() {
    let mut deep = json!({"type": "object"});
    for _ in 0..60 {
        deep = json!({"properties": {"a": deep}});
    }
    let definition = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": deep}}]}});
    let at = "/spec/versions/0/schema";
    assert_eq!(kept(DEFINITION, definition.clone()).pointer(at), definition.pointer(at));
    let wide: serde_json::Map<String, Value> =
        (0..100_000).map(|key| (format!("k{key}"), "v".into())).collect();
    let map = json!({"metadata": {}, "data": wide});
    assert_eq!(kept("api.core.v1.ConfigMap", map.clone()), map);
    let (object, unknown) =
        decoded("api.autoscaling.v1.HorizontalPodAutoscaler", json!({"spec": map["data"]})).unwrap();
    let spec = json!({"maxReplicas": 0, "scaleTargetRef": {"kind": "", "name": ""}});
    assert_eq!((&object["spec"], unknown.len()), (&spec, 100_000));
}

#[test]
fn zeros_of_fields_that_are_no_pointers_are_absent() {
    let container =
        json!({"name": "c", "stdin": false, "workingDir": "", "securityContext": {"privileged": false}});
    let pod = kept(
        "api.core.v1.Pod",
        json!({"spec": {"containers": [container], "priority": 0, "hostNetwork": false, "nodeName": ""}}),
    );
    assert_eq!(
        pod["spec"],
        json!({"containers": [{"name": "c", "resources": {}, "securityContext": {"privileged": false}}], "priority": 0})
    );
}

#[test]
fn fields_that_are_always_written_are_there() {
    let condition = json!({"type": "Ready", "status": "True"});
    let pod = kept("api.core.v1.Pod", json!({"status": {"conditions": [condition]}}));
    assert_eq!(
        pod,
        json!({"metadata": {}, "spec": {"containers": null}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}]}})
    );
}

#[test]
fn a_number_beyond_64_bits_becomes_the_least_one_where_an_object_is_converted() {
    let whole = |text: &str| super::whole(&serde_json::from_str(text).expect("a number"));
    assert_eq!(whole("9223372036854775808"), Some(i64::MIN));
    assert_eq!(whole("1e30"), Some(i64::MIN));
    assert_eq!(whole("-1e30"), Some(i64::MIN));
    assert_eq!(whole("1e3"), Some(1000));
    assert_eq!(whole("0.5"), None);
}

#[test]
fn within_a_decoder_of_its_own_the_struct_around_is_named() {
    let schema = |schema: Value| {
        let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
        error(DEFINITION, json!({"spec": {"versions": [version]}}))
    };
    let rules = json!([{"rule": 1}]);
    let place = "spec.versions.schema.openAPIV3Schema";
    assert_eq!(
        schema(json!({"x-kubernetes-validations": rules})),
        format!(
            "json: cannot unmarshal number into Go struct field ValidationRule.{place}.x-kubernetes-validations.rule of type string"
        )
    );
    assert_eq!(
        schema(json!({"items": {"x-kubernetes-validations": rules}})),
        format!(
            "json: cannot unmarshal number into Go struct field JSONSchemaProps.{place}.items.x-kubernetes-validations.rule of type string"
        )
    );
}

#[test]
fn the_type_of_an_object_in_an_object_is_told_with_the_struct_that_it_is_inlined_by() {
    assert_eq!(
        error("api.apps.v1.StatefulSet", json!({"spec": {"volumeClaimTemplates": [{"kind": 1}]}})),
        "json: cannot unmarshal number into Go struct field PersistentVolumeClaim.spec.volumeClaimTemplates.TypeMeta.kind of type string"
    );
    assert_eq!(
        error("api.core.v1.Binding", json!({"target": {"kind": 1}})),
        "json: cannot unmarshal number into Go struct field ObjectReference.target.kind of type string"
    );
}

#[test]
fn what_converts_an_object_decodes_a_schema_in_a_schema_as_json() {
    let convert = |schema: Value| {
        let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
        let mut definition = json!({"spec": {"versions": [version]}});
        Schema::built_in(format!("io.k8s.{DEFINITION}"))
            .decode_made(&mut definition, Maker::Merge)
            .unwrap_err()
    };
    assert_eq!(convert(json!({"type": 1})), "cannot convert int64 to string");
    assert_eq!(
        convert(json!({"properties": {"a": {"items": {"type": 1}}}})),
        "json: cannot unmarshal number into Go struct field JSONSchemaProps.type of type string"
    );
    assert_eq!(convert(json!({"additionalProperties": "x"})), "boolean or JSON schema expected");
}
