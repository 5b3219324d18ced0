use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::inputs::fixture::{NOW, Scratch, node, object, place, pod};
use crate::inputs::{Fetched, Node, Token, TokenNeed};

/// A pod that mounts one volume, `v`, with this source.
fn with(volume: Value) -> Pod {
    with_spec(volume, json!({}))
}

fn with_spec(mut volume: Value, mut spec: Value) -> Pod {
    volume["name"] = json!("v");
    spec["volumes"] = json!([volume]);
    spec["containers"] = json!([{"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]);
    pod(spec)
}

fn planned(pod: &Pod, fetched: &Fetched, node: &Node) -> Planned {
    let mut plan = plan(pod, fetched, place(node));
    assert_eq!(plan.failed, vec![]);
    plan.volumes.remove("v").unwrap()
}

fn refused(volume: Value, fetched: &Fetched) -> String {
    let plan = plan(&with(volume), fetched, place(&node(Path::new("/kubelet"))));
    assert!(plan.volumes.is_empty());
    plan.failed[0].to_string()
}

fn set_up(message: &str) -> String {
    format!("MountVolume.SetUp failed for volume \"v\" : {message}")
}

/// What one finds in a folder of files, with their modes.
fn files(folder: &Path) -> BTreeMap<String, (String, u32)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let seen = entries.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with(".."));
    let file = |path: PathBuf| {
        let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
        (path.file_name().unwrap().to_str().unwrap().to_owned(), (fs::read_to_string(&path).unwrap(), mode))
    };
    seen.filter(|path| path.is_file()).map(file).collect()
}

fn file(text: &str, mode: u32) -> (String, u32) {
    (text.to_owned(), mode)
}

#[test]
fn keys_become_files_with_their_modes_and_follow_changes() {
    let folder = Scratch::new();
    let node = node(&folder);
    let pod = with(json!({"configMap": {"name": "c", "defaultMode": 0o640}}));
    let first = planned(&pod, &Fetched::default().config_map("c", json!({"a": "1", "b": "2"})), &node);
    assert_eq!(first.source(), folder.join("pods/u1/volumes/kubernetes.io~configmap/v"));
    assert!(first.is_read_only() && first.follows_changes());
    assert_eq!(write("v", &first, &pod, NOW), Ok(Change::Written));
    let expected = [("a".to_owned(), file("1", 0o640)), ("b".to_owned(), file("2", 0o640))];
    assert_eq!(files(first.source()), expected.into());

    let second = planned(&pod, &Fetched::default().config_map("c", json!({"b": "3"})), &node);
    assert_ne!(first, second);
    assert_eq!(write("v", &second, &pod, NOW), Ok(Change::Written));
    assert_eq!(files(second.source()), [("b".to_owned(), file("3", 0o640))].into());
    assert_eq!(write("v", &second, &pod, NOW), Ok(Change::None));
}

#[test]
fn items_choose_keys_paths_and_modes() {
    let folder = Scratch::new();
    let node = node(&folder);
    let pod = with(json!({"secret": {"secretName": "s", "items": [
        {"key": "k", "path": "x"}, {"key": "k", "path": "y", "mode": 0o400}]}}));
    let planned = planned(&pod, &Fetched::default().secret("s", &[("k", "v"), ("other", "o")]), &node);
    write("v", &planned, &pod, NOW).unwrap();
    let expected = [("x".to_owned(), file("v", 0o644)), ("y".to_owned(), file("v", 0o400))];
    assert_eq!(files(planned.source()), expected.into());
}

#[test]
fn what_is_missing_is_told_in_the_kubelets_words() {
    let fetched = Fetched::default().config_map("c", json!({"k": "v"})).secret("s", &[("k", "v")]);
    let item = json!([{"key": "no", "path": "x"}]);
    for (volume, message) in [
        (json!({"configMap": {"name": "x"}}), r#"configmap "x" not found"#),
        (json!({"secret": {"secretName": "x"}}), r#"secret "x" not found"#),
        (
            json!({"configMap": {"name": "c", "items": item}}),
            "configmap references non-existent config key: no",
        ),
        (json!({"secret": {"secretName": "s", "items": item}}), "references non-existent secret key: no"),
        (
            json!({"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "spec.nodeName"}}]}}),
            "unsupported fieldPath: spec.nodeName",
        ),
        (
            json!({"projected": {"sources": [
                {"configMap": {"name": "x"}}, {"secret": {"name": "y"}}, {"configMap": {"name": "x"}}]}}),
            r#"[configmap "x" not found, secret "y" not found]"#,
        ),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}),
            "failed to fetch token: there is none yet",
        ),
        (
            json!({"projected": {"sources": [{"clusterTrustBundle": {"path": "x", "name": "y"}}]}}),
            "ClusterTrustBundle projection is not supported by this node",
        ),
        (
            json!({"projected": {"sources": [{"podCertificate": {"signerName": "x", "keyType": "ED25519"}}]}}),
            "PodCertificate projection is not supported by this node",
        ),
        (json!({"hostPath": {"path": "/"}}), "hostPath volumes are not allowed on this node"),
        (json!({"nfs": {"server": "x", "path": "/"}}), "nfs volumes are not supported by this node"),
        (json!({"csi": {"driver": "x"}}), "csi volumes are not supported by this node"),
        (json!({"image": {"reference": "busybox"}}), r#"image "busybox" is not present"#),
    ] {
        assert_eq!(refused(volume.clone(), &fetched), set_up(message), "{volume}");
    }
}

#[test]
fn what_is_optional_may_be_missing() {
    let folder = Scratch::new();
    let node = node(&folder);
    for volume in [
        json!({"configMap": {"name": "x", "optional": true}}),
        json!({"secret": {"secretName": "x", "optional": true, "items": [{"key": "k", "path": "p"}]}}),
        json!({"projected": {"sources": [{"secret": {"name": "x", "optional": true}}]}}),
    ] {
        let pod = with(volume);
        let planned = planned(&pod, &Fetched::default(), &node);
        write("v", &planned, &pod, NOW).unwrap();
        assert!(files(planned.source()).is_empty());
    }
}

fn token(value: &str) -> Token {
    Token::of(&object(json!({"spec": {"audiences": [], "expirationSeconds": 3607},
        "status": {"token": value, "expirationTimestamp": "2026-01-01T01:00:07Z"}})))
    .unwrap()
}

/// The volume that admission gives to every pod.
fn credentials() -> Value {
    json!({"projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]}})
}

fn fetched_token(value: &str) -> Fetched {
    let mut fetched = Fetched::default().config_map("kube-root-ca.crt", json!({"ca.crt": "CA"}));
    let need = TokenNeed { audience: String::new(), expiration_seconds: 3607 };
    fetched.tokens.insert(need, Ok(token(value)));
    fetched
}

#[test]
fn a_pod_finds_its_credentials_and_they_are_replaced() {
    let folder = Scratch::new();
    let node = node(&folder);
    let pod = with(credentials());
    for value in ["first", "second"] {
        let planned = planned(&pod, &fetched_token(value), &node);
        assert_eq!(write("v", &planned, &pod, NOW), Ok(Change::Written));
        let expected = [("ca.crt", "CA"), ("namespace", "ns"), ("token", value)];
        let expected = expected.map(|(name, text)| (name.to_owned(), file(text, 0o644)));
        assert_eq!(files(planned.source()), expected.into());
    }
}

#[test]
fn only_the_user_and_the_group_of_a_pod_read_its_token() {
    let folder = Scratch::new();
    let node = node(&folder);
    let mode = |spec: Value| {
        let pod = with_spec(credentials(), spec);
        let Content::Files { payload, .. } = planned(&pod, &fetched_token("t"), &node).content else {
            panic!()
        };
        (payload.0["token"].mode, payload.0["token"].owner, payload.0["ca.crt"].mode)
    };
    assert_eq!(mode(json!({})), (0o644, None, 0o644));
    assert_eq!(mode(json!({"securityContext": {"runAsUser": 7}})), (0o600, Some(7), 0o644));
    assert_eq!(mode(json!({"securityContext": {"fsGroup": 7}})), (0o600, None, 0o644));
}

#[test]
fn the_downward_api_is_told_in_files() {
    let folder = Scratch::new();
    let node = node(&folder);
    let mut pod = with(json!({"downwardAPI": {"items": [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "mode": 0o600, "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu"}}]}}));
    pod.metadata.labels = Some([("a".to_owned(), "1".to_owned())].into());
    let planned = planned(&pod, &Fetched::default(), &node);
    write("v", &planned, &pod, NOW).unwrap();
    let expected = [("cpu".to_owned(), file("4", 0o600)), ("labels".to_owned(), file("a=\"1\"", 0o644))];
    assert_eq!(files(planned.source()), expected.into());
}

#[test]
fn a_scratch_folder_is_everybodys_and_is_gone_with_the_pod() {
    let folder = Scratch::new();
    let node = node(&folder);
    let pod =
        with_spec(json!({"emptyDir": {"medium": "Memory"}}), json!({"securityContext": {"fsGroup": 1}}));
    let planned = planned(&pod, &Fetched::default(), &node);
    assert!(!planned.is_read_only() && !planned.follows_changes());
    assert_eq!(write("v", &planned, &pod, NOW), Ok(Change::Written));
    assert_eq!(planned.source().metadata().unwrap().permissions().mode() & 0o777, 0o777);
    let inner = planned.source().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("file"), "kept").unwrap();
    assert_eq!(write("v", &planned, &pod, NOW), Ok(Change::None));
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o000)).unwrap();
    symlink(&*folder, planned.source().join("link")).unwrap();
    remove(&node, &pod).unwrap();
    assert!(folder.join("pods").exists() && !node.pod_folder(&pod).exists());
    remove(&node, &pod).unwrap();
}

#[test]
fn fs_group_lets_the_group_read_what_it_may_not_write() {
    let folder = Scratch::new();
    let node = node(&folder);
    let pod = with_spec(
        json!({"secret": {"secretName": "s", "defaultMode": 0o400}}),
        json!({"securityContext": {"fsGroup": 1}}),
    );
    let planned = planned(&pod, &Fetched::default().secret("s", &[("k", "v")]), &node);
    write("v", &planned, &pod, NOW).unwrap();
    assert_eq!(files(planned.source()), [("k".to_owned(), file("v", 0o440))].into());
}

#[test]
fn fs_group_is_given_what_other_pods_left_and_nothing_that_their_links_lead_to() {
    let (folder, outside) = (Scratch::new(), Scratch::new());
    let node = node(&folder);
    let pod = with_spec(
        json!({"persistentVolumeClaim": {"claimName": "data"}}),
        json!({"securityContext": {"fsGroup": 7}}),
    );
    let planned = planned(&pod, &bound(|_| {}, |_| {}), &node);
    write("v", &planned, &pod, NOW).unwrap();
    let volume = folder.join("volumes/pv");
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fs::create_dir(volume.join("a")).unwrap();
    for (path, mode) in [(volume.join("a/own"), 0o4100), (outside.join("kept"), 0o600)] {
        fs::write(&path, "").unwrap();
        set_mode(&path, mode);
    }
    set_mode(&volume.join("a"), 0o700);
    set_mode(&outside, 0o700);
    symlink(outside.join("kept"), volume.join("a/file")).unwrap();
    symlink(&*outside, volume.join("a/folder")).unwrap();
    write("v", &planned, &pod, NOW).unwrap();
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(volume.join("a")), mode(volume.join("a/own"))), (0o2770, 0o4760));
    assert_eq!((mode(outside.to_owned()), mode(outside.join("kept"))), (0o700, 0o600));
    fs::create_dir_all(volume.join("d/".repeat(200))).unwrap();
    let error = write("v", &planned, &pod, NOW).unwrap_err().to_string();
    assert_eq!(error, set_up(&format!("{}: more than 128 folders are below each other", volume.display())));
}

#[test]
fn host_paths_are_checked_where_they_are_allowed() {
    let folder = Scratch::new();
    let mut node = node(&folder);
    node.host_access = true;
    let write = |path: &Path, kind: &str| {
        let pod = with(json!({"hostPath": {"path": path, "type": kind}}));
        let planned = planned(&pod, &Fetched::default(), &node);
        assert_eq!(planned.source(), path);
        super::write("v", &planned, &pod, NOW).map_err(|error| error.to_string())
    };
    let (a, b) = (folder.join("a"), folder.join("b"));
    assert!(write(&a, "DirectoryOrCreate").is_ok() && a.is_dir());
    assert!(write(&b, "FileOrCreate").is_ok() && b.is_file());
    let wrong = |path: &Path, what: &str| {
        Err(set_up(&format!("hostPath type check failed: {} is not {what}", path.display())))
    };
    assert_eq!(write(&a, "File"), wrong(&a, "a file"));
    assert_eq!(write(&b, "Directory"), wrong(&b, "a directory"));
    assert_eq!(write(&b, "DirectoryOrCreate"), wrong(&b, "a directory"));
    assert_eq!(write(&b, "Socket"), wrong(&b, "a socket file"));
    assert_eq!(write(&b, "CharDevice"), wrong(&b, "a character device"));
    assert_eq!(write(Path::new("/dev/null"), "CharDevice"), Ok(Change::None));
    assert_eq!(write(&b, "BlockDevice"), wrong(&b, "a block device"));
    assert_eq!(write(&b, "Nonsense"), Err(set_up("Nonsense is an invalid volume type")));
}

#[test]
fn a_volume_has_a_place_for_those_that_are_mounted_inside() {
    let folder = Scratch::new();
    let node = node(&folder);
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let pod = pod(json!({
        "containers": [{"name": "app", "volumeMounts": [
            mount("v", "/etc/./app/"), mount("w", "/etc/app/a/b"), mount("w", "/etc/app/a/b/c"), mount("w", "/etc/apples")]}],
        "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}]}));
    let planned = planned(&pod, &Fetched::default().config_map("c", json!({"k": "v"})), &node);
    write("v", &planned, &pod, NOW).unwrap();
    assert!(planned.source().join("a/b").is_dir() && !planned.source().join("a/b/c").exists());
}

#[test]
fn a_place_for_another_volume_is_nowhere_but_in_its_own() {
    let (folder, outside) = (Scratch::new(), Scratch::new());
    let node = node(&folder);
    let mount = |name: &str, path: &Path| json!({"name": name, "mountPath": path});
    let made = outside.join("made");
    let pod = pod(json!({
        "containers": [{"name": "app", "volumeMounts": [
            mount("v", Path::new(".")), mount("w", &made), mount("w", Path::new("../../up"))]}],
        "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}]}));
    let planned = planned(&pod, &Fetched::default().config_map("c", json!({"k": "v"})), &node);
    write("v", &planned, &pod, NOW).unwrap();
    assert!(!made.exists(), "made on the machine");
    assert!(planned.source().join("up").is_dir() && !planned.source().join("../../up").exists());
}

/// A claim `data` and the volume `pv` that it is bound to, with these changes.
fn bound(claim: impl Fn(&mut Value), volume: impl Fn(&mut Value)) -> Fetched {
    let mut claim_value = json!({"metadata": {"name": "data", "namespace": "ns", "uid": "c1"},
        "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}});
    claim(&mut claim_value);
    let mut volume_value = json!({"metadata": {"name": "pv"}, "spec": {
        "claimRef": {"uid": "c1"}, "csi": {"driver": "simulated.kubewright.dev", "volumeHandle": "pv"}}});
    volume(&mut volume_value);
    let mut fetched = Fetched::default();
    fetched.claims.insert("data".to_owned(), Ok(Arc::new(object(claim_value))));
    fetched.persistent_volumes.insert("pv".to_owned(), Ok(Arc::new(object(volume_value))));
    fetched
}

#[test]
fn the_volume_of_a_claim_outlives_its_pods() {
    let folder = Scratch::new();
    let node = node(&folder);
    let pod = with(json!({"persistentVolumeClaim": {"claimName": "data"}}));
    let planned = planned(&pod, &bound(|_| {}, |_| {}), &node);
    write("v", &planned, &pod, NOW).unwrap();
    fs::write(planned.source().join("file"), "kept").unwrap();
    remove(&node, &pod).unwrap();
    write("v", &planned, &pod, NOW).unwrap();
    assert_eq!(fs::read_to_string(folder.join("volumes/pv/file")).unwrap(), "kept");
    assert!(!planned.is_read_only());
    let pod = with(json!({"persistentVolumeClaim": {"claimName": "data", "readOnly": true}}));
    assert!(super::plan(&pod, &bound(|_| {}, |_| {}), place(&node)).volumes["v"].is_read_only());
}

#[test]
fn a_claim_that_cannot_be_used_is_told_in_the_kubelets_words() {
    let claim = || json!({"persistentVolumeClaim": {"claimName": "data"}});
    let process = |message: &str| {
        format!(
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process \
             volumes=[v]: error processing PVC ns/data: {message}"
        )
    };
    let missing = "failed to fetch PVC from API server: persistentvolumeclaims \"data\" not found";
    assert_eq!(refused(claim(), &Fetched::default()), process(missing));
    let pending = bound(|claim| claim["status"]["phase"] = json!("Pending"), |_| {});
    assert_eq!(refused(claim(), &pending), process("PVC is not bound"));
    let going = |claim: &mut Value| claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(refused(claim(), &bound(going, |_| {})), process("PVC is being deleted"));
    let of_another = bound(|_| {}, |volume| volume["spec"]["claimRef"]["uid"] = json!("c2"));
    let message = "found PV object pv but its pv.Spec.ClaimRef.UID c2 does not point to claim.UID c1";
    assert_eq!(refused(claim(), &of_another), process(message));
    let mut without = bound(|_| {}, |_| {});
    without.persistent_volumes.clear();
    let message = "failed to fetch PV pv from API server: persistentvolumes \"pv\" not found";
    assert_eq!(refused(claim(), &without), process(message));
}

#[test]
fn a_claim_under_protection_is_used_while_it_is_going() {
    let going = |claim: &mut Value| {
        claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        claim["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
    };
    let pod = with(json!({"persistentVolumeClaim": {"claimName": "data"}}));
    planned(&pod, &bound(going, |_| {}), &node(Path::new("/kubelet")));
}

#[test]
fn an_ephemeral_claim_is_the_pods_own() {
    let volume = || json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
    let fetched = |owner: &str| {
        let owners =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": owner, "controller": true}]);
        let mut fetched = bound(|claim| claim["metadata"]["ownerReferences"] = owners.clone(), |_| {});
        let claim = fetched.claims.remove("data").unwrap();
        fetched.claims.insert("web-v".to_owned(), claim);
        fetched
    };
    planned(&with(volume()), &fetched("u1"), &node(Path::new("/kubelet")));
    let message = refused(volume(), &fetched("u2"));
    let expected =
        "failed to process volumes=[v]: PVC ns/web-v was not created for pod ns/web (pod is not owner)";
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn volumes_of_this_machine_need_its_users_leave() {
    let local = |volume: &mut Value| {
        volume["spec"] = json!({"claimRef": {"uid": "c1"}, "hostPath": {"path": "/data"}});
    };
    let source = || json!({"persistentVolumeClaim": {"claimName": "data"}});
    let message = "hostPath and local volumes are not allowed on this node";
    let expected = format!("MountVolume.SetUp failed for volume \"pv\" : {message}");
    assert_eq!(refused(source(), &bound(|_| {}, local)), expected);
    let mut node = node(Path::new("/kubelet"));
    node.host_access = true;
    assert_eq!(planned(&with(source()), &bound(|_| {}, local), &node).source(), Path::new("/data"));
    let nfs = |volume: &mut Value| {
        volume["spec"] = json!({"claimRef": {"uid": "c1"}, "nfs": {"server": "x", "path": "/"}});
    };
    assert!(refused(source(), &bound(|_| {}, nfs)).contains("this node has only volumes of the provisioner"));
}

#[test]
fn volumes_that_no_container_uses_are_not_made() {
    let pod = pod(
        json!({"containers": [{"name": "app"}], "volumes": [{"name": "v", "nfs": {"server": "x", "path": "/"}}]}),
    );
    assert_eq!(plan(&pod, &Fetched::default(), place(&node(Path::new("/")))), Plan::default());
}
