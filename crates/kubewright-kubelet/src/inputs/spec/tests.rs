use serde_json::{Value, json};

use super::*;
use crate::inputs::fixture::{NOW, Scratch, first, node, place, pod};
use crate::inputs::volumes;

/// A machine, and an image that knows the user `web`.
struct Machine {
    folder: Scratch,
    image: Image,
}

impl Machine {
    fn new() -> Self {
        let folder = Scratch::new();
        fs::create_dir_all(folder.join("image/etc")).unwrap();
        fs::write(folder.join("image/etc/passwd"), "web:x:33:34::/var/www:\n").unwrap();
        let config = Config {
            entrypoint: vec!["serve".to_owned()],
            cmd: vec!["--all".to_owned()],
            env: vec![("LANG".to_owned(), "C".to_owned())],
            working_dir: "/srv".to_owned(),
            user: "web".to_owned(),
            ..Config::default()
        };
        let image = Image { root: Root::Image(folder.join("image")), config };
        Self { folder, image }
    }

    fn spec(&self, pod: &Pod, run: u32) -> Result<Spec, InputError> {
        let node = node(&self.folder);
        let plan = volumes::plan(pod, &Fetched::default(), place(&node));
        assert_eq!(plan.failed, vec![]);
        for (name, planned) in &plan.volumes {
            volumes::write(name, planned, pod, NOW).unwrap();
        }
        let inputs =
            PodInputs { pod, place: place(&node), fetched: &Fetched::default(), volumes: &plan.volumes };
        inputs.container_spec(first(pod), run, &self.image)
    }
}

fn one(container: Value) -> Pod {
    let mut container = container;
    container["name"] = json!("app");
    pod(json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}))
}

#[test]
fn a_container_gets_what_its_pod_and_its_image_say() {
    let machine = Machine::new();
    let mut pod = one(json!({
        "args": ["$(NAME)"], "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "terminationMessagePath": "/dev/termination-log", "stdin": true, "tty": true,
        "securityContext": {"readOnlyRootFilesystem": true},
        "volumeMounts": [{"name": "v", "mountPath": "/a/b/c"}, {"name": "v", "mountPath": "/a"}]}));
    let context = json!({"sysctls": [{"name": "kernel/shm_rmid_forced", "value": "1"}]});
    pod.spec.as_mut().unwrap().security_context = Some(kubewright_objects::from_value(context).unwrap());
    let spec = machine.spec(&pod, 3).unwrap();
    assert_eq!(spec.sysctls, [("kernel.shm_rmid_forced".to_owned(), "1".to_owned())].into());
    assert_eq!(spec.id, "u1_app_3");
    assert_eq!(spec.root, machine.image.root);
    assert_eq!(spec.command, ["serve", "web"]);
    assert_eq!(spec.working_directory, Path::new("/srv"));
    assert_eq!((spec.identity.uid, spec.identity.gid), (33, 34));
    assert_eq!(spec.hostname, "web");
    assert_eq!((spec.stdin, spec.stdin_once, spec.tty, spec.read_only_root), (true, false, true, true));
    assert_eq!(spec.log, machine.folder.join("logs/ns_web_u1/app/3.log"));
    for (name, value) in
        [("NAME", "web"), ("LANG", "C"), ("HOME", "/var/www"), ("KUBERNETES_SERVICE_PORT", "6443")]
    {
        assert_eq!(spec.environment[name], value);
    }
    let targets: Vec<_> = spec.mounts.iter().map(|mount| mount.target.to_str().unwrap()).collect();
    assert_eq!(targets, ["/a", "/etc/hosts", "/etc/resolv.conf", "/dev/termination-log", "/a/b/c"]);
}

#[test]
fn its_own_files_are_made_anew_for_each_run_and_shared_by_the_pod() {
    let machine = Machine::new();
    let pod = one(json!({"terminationMessagePath": "/dev/termination-log"}));
    let source = |spec: &Spec, target: &str| {
        let mount = spec.mounts.iter().find(|mount| mount.target == Path::new(target)).unwrap();
        mount.source.clone()
    };
    let (first, second) = (machine.spec(&pod, 0).unwrap(), machine.spec(&pod, 1).unwrap());
    assert_eq!(source(&first, HOSTS), source(&second, HOSTS));
    assert!(fs::read_to_string(source(&first, HOSTS)).unwrap().contains("10.1.0.7\tweb\n"));
    let message = source(&first, "/dev/termination-log");
    assert_ne!(message, source(&second, "/dev/termination-log"));
    assert_eq!(message.metadata().unwrap().permissions().mode() & 0o777, 0o666);
    fs::write(&message, "said").unwrap();
    let node = node(&machine.folder);
    assert_eq!(termination::read(&node, &pod, super::super::fixture::first(&pod), 0, 1), "said");
}

#[test]
fn what_a_container_mounts_itself_is_not_hidden() {
    let machine = Machine::new();
    let pod = one(
        json!({"volumeMounts": [{"name": "v", "mountPath": "/etc/hosts"}, {"name": "v", "mountPath": "/etc/resolv.conf"}]}),
    );
    let spec = machine.spec(&pod, 0).unwrap();
    assert!(spec.mounts.iter().all(|mount| mount.source.ends_with("kubernetes.io~empty-dir/v")));
    assert_eq!(spec.mounts.len(), 2);
}

#[test]
fn what_the_kubelet_refuses_has_its_reason() {
    let machine = Machine::new();
    let pod =
        one(json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}}]}));
    let error = machine.spec(&pod, 0).unwrap_err();
    assert_eq!(
        (error.reason(), error.to_string().as_str()),
        ("CreateContainerConfigError", "configmap \"x\" not found")
    );
}

#[test]
fn a_variable_is_read_from_a_file_that_another_container_wrote() {
    let machine = Machine::new();
    let variable = |key: &str, optional: bool| {
        let file = json!({"volumeName": "v", "path": "out/env", "key": key, "optional": optional});
        one(
            json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}], "env": [{"name": "A", "valueFrom": {"fileKeyRef": file}}]}),
        )
    };
    let error = machine.spec(&variable("KEY", false), 0).unwrap_err();
    assert_eq!(error, InputError::Config("couldn't parse env file".to_owned()));
    let volume = machine.folder.join("pods/u1/volumes/kubernetes.io~empty-dir/v");
    fs::create_dir_all(volume.join("out")).unwrap();
    fs::write(volume.join("out/env"), "KEY='written'\n").unwrap();
    assert_eq!(machine.spec(&variable("KEY", false), 0).unwrap().environment["A"], "written");
    assert!(!machine.spec(&variable("NONE", true), 0).unwrap().environment.contains_key("A"));
    let file = volume.join("out/env");
    assert_eq!(
        machine.spec(&variable("NONE", false), 0).unwrap_err(),
        InputError::Config(format!("environment variable key \"NONE\" not found in file {file:?}"))
    );
}

#[test]
fn an_image_cannot_show_the_users_of_this_machine_as_its_own() {
    let machine = Machine::new();
    fs::write(machine.folder.join("passwd"), "web:x:77:77::/:\n").unwrap();
    fs::remove_file(machine.folder.join("image/etc/passwd")).unwrap();
    std::os::unix::fs::symlink("../../passwd", machine.folder.join("image/etc/passwd")).unwrap();
    let error = machine.spec(&one(json!({})), 0).unwrap_err();
    assert_eq!(error.reason(), "CreateContainerError");
}
