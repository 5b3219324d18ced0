//! What containers see of files, and that the machine's stay as they are.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use kubewright_kubelet::container::{Identity, Root, Spec, StartError};
use rustix::process::geteuid;

use crate::support::{Bench, mount};

/// An image of one program under many names, where this machine has it.
fn image(bench: &Bench) -> Option<PathBuf> {
    if !bench.has("mount") {
        return None;
    }
    let root = bench.directory.join("image,with:odd name");
    for folder in ["bin", "run", "etc"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    symlink("/run", root.join("var")).expect("a link");
    let busybox = std::env::var_os("BUSYBOX").map_or_else(|| PathBuf::from("/bin/busybox"), PathBuf::from);
    if let Err(error) = fs::copy(&busybox, root.join("bin/busybox")) {
        println!("  skipped: no static busybox at {} (or at $BUSYBOX): {error}", busybox.display());
        return None;
    }
    for program in ["sh", "cat", "echo", "id", "ls", "hostname", "ps", "touch", "mkdir", "sleep", "stat"] {
        symlink("busybox", root.join("bin").join(program)).expect("a link");
    }
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("its own folder");
    Some(root)
}

fn in_image(bench: &Bench, script: &str) -> Option<Spec> {
    let root = image(bench)?;
    let mut spec = bench.spec(&["/bin/sh", "-c", script]);
    spec.root = Root::Image(root);
    spec.environment.insert("PATH".to_owned(), "/bin".to_owned());
    Some(spec)
}

pub(crate) async fn what_a_container_writes_to_the_machine_it_alone_sees() {
    let bench = Bench::new().await;
    if !bench.has("mount") {
        return;
    }
    let before = fs::read("/etc/hostname").expect("a host's name");
    // Whoever is not root on the machine cannot change what is root's, in a container neither.
    let changes = if geteuid().is_root() {
        "echo changed > /etc/hostname && cat /etc/hostname && mkdir /usr/lib/new && ls -d /usr/lib/new \
            && rm -r /etc/ssl && ! ls /etc/ssl 2>/dev/null && "
    } else {
        "echo changed; echo /usr/lib/new; "
    };
    let own = bench.directory.join("own");
    fs::write(&own, "mine\n").expect("a file");
    let own = own.display().to_string();
    let script = format!("{changes} touch /new && ls /new && echo yours > {own} && cat {own}");
    let (exit, log) = bench.run(bench.script(&script)).await;
    assert_eq!((exit.code, log.as_str()), (0, "changed\n/usr/lib/new\n/new\nyours\n"));
    assert_eq!(fs::read("/etc/hostname").expect("a host's name"), before);
    assert_eq!(fs::read_to_string(own).expect("a file"), "mine\n");
    assert!(
        Path::new("/etc/ssl").exists() && !Path::new("/usr/lib/new").exists() && !Path::new("/new").exists()
    );
}

pub(crate) async fn a_command_of_the_machine_sees_mounts_where_there_is_nothing() {
    let bench = Bench::new().await;
    let token = bench.directory.join("volume/token");
    fs::create_dir_all(bench.directory.join("volume")).expect("a folder");
    fs::write(&token, "t0ken\n").expect("a file");
    let mut spec =
        bench.script("cat /var/run/secrets/kubernetes.io/serviceaccount/token; ls /usr/share | wc -l");
    let target = PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount");
    spec.mounts = vec![mount(&bench.directory.join("volume"), target.to_str().expect("text"), true)];
    if !bench.has("mount") {
        let StartError::Create(text) = bench.refusal(spec).await else { panic!("another error") };
        let reason =
            format!("a container cannot have something mounted at {} on this machine: ", target.display());
        assert!(text.starts_with(&reason), "{text}");
        return;
    }
    let (exit, log) = bench.run(spec).await;
    let shared = fs::read_dir("/usr/share").expect("a folder").count();
    assert_eq!((exit.code, log), (0, format!("t0ken\n{shared}\n")));
    assert!(!Path::new("/run/secrets").exists());
}

pub(crate) async fn an_image_is_a_root_of_its_own_with_processes_devices_and_a_name() {
    let bench = Bench::new().await;
    // One stream: two are read side by side.
    let script = "exec 2>&1; hostname; ls /; echo $$; ps -o pid,comm | cat; echo lost > /dev/null; ls -l /dev/fd /dev/ptmx \
        | wc -l; test -c /dev/urandom && test -w /dev/shm && touch /proc/sys/kernel/core_pattern; cat /proc/kcore | wc -c";
    let Some(mut spec) = in_image(&bench, script) else { return };
    spec.command = ["/bin/busybox", "sh", "-c", script].map(str::to_owned).to_vec();
    symlink("busybox", bench.directory.join("image,with:odd name/bin/wc")).expect("a link");
    let (_, log) = bench.run(spec).await;
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[..8], ["box", "bin", "dev", "etc", "proc", "run", "var", "1"], "{log}");
    assert!(lines.contains(&"    1 busybox"), "{log}");
    assert!(log.contains("core_pattern: Read-only file system"), "{log}");
    assert!(lines.contains(&"0"), "{log}");
}

pub(crate) async fn an_image_is_shared_and_never_written_to() {
    let bench = Bench::new().await;
    let Some(spec) =
        in_image(&bench, "ls /made 2>/dev/null; touch /made && ls /made && rm /bin/id && ls /bin/id")
    else {
        return;
    };
    let root = bench.directory.join("image,with:odd name");
    for _ in 0..2 {
        let (exit, log) = bench.run(spec.clone()).await;
        assert_eq!(exit.code, 1);
        assert!(log.contains("/made\n") && log.contains("ls: /bin/id: No such file"), "{log}");
        assert!(!root.join("made").exists() && root.join("bin/id").exists());
    }
    let left: Vec<_> =
        fs::read_dir(bench.directory.join("containers")).expect("a folder").flatten().collect();
    assert_eq!(left.iter().map(fs::DirEntry::file_name).collect::<Vec<_>>(), ["lock"]);
}

pub(crate) async fn mounts_are_seen_where_they_are_wanted() {
    let bench = Bench::new().await;
    let script =
        "cat /var/secret/token /etc/hosts; echo new > /data/file; echo no > /var/secret/token; touch /no";
    let Some(mut spec) = in_image(&bench, script) else { return };
    let volume = bench.directory.join("volume");
    for folder in ["data", "secret"] {
        fs::create_dir_all(volume.join(folder)).expect("a folder");
    }
    fs::write(volume.join("secret/token"), "t0ken\n").expect("a file");
    fs::write(volume.join("hosts"), "127.0.0.1 localhost\n").expect("a file");
    let mount = |source: &str, target: &str, read_only| mount(&volume.join(source), target, read_only);
    spec.mounts = vec![
        mount("data", "/data", false),
        mount("secret", "/var/secret", true),
        mount("hosts", "/etc/hosts", true),
    ];
    spec.read_only_root = true;
    let (exit, log) = bench.run(spec.clone()).await;
    assert_eq!(exit.code, 1);
    assert!(log.contains("t0ken\n") && log.contains("127.0.0.1 localhost\n"), "{log}");
    assert!(log.contains("can't create /var/secret/token: Read-only file system"), "{log}");
    assert!(log.contains("touch: /no: Read-only file system"), "{log}");
    assert_eq!(fs::read_to_string(volume.join("data/file")).expect("it is written"), "new\n");
    // Through the image's link, and not into the image.
    assert!(!bench.directory.join("image,with:odd name/run/secret").exists());

    spec.mounts = vec![mount("absent", "/data", false)];
    let StartError::Run(text) = bench.refusal(spec).await else { panic!("another error") };
    let source = volume.join("absent").display().to_string();
    let reason = format!("error mounting {source:?} to rootfs at \"/data\": no such file or directory");
    assert!(text.ends_with(&reason), "{text}");
}

pub(crate) async fn a_container_is_the_user_that_it_asks_for() {
    let bench = Bench::new().await;
    let Some(mut spec) = in_image(&bench, "id -u; id -g; echo out > /dev/stdout; cat /proc/self/status")
    else {
        return;
    };
    spec.identity = Identity { uid: 1234, gid: 4321, groups: vec![77] };
    let (exit, log) = bench.run(spec.clone()).await;
    assert!(exit.code == 0 && log.starts_with("1234\n4321\nout\n"), "{log}");
    for line in [
        "CapEff:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
    ] {
        assert!(log.contains(line), "{log}");
    }
    if geteuid().is_root() {
        assert!(log.contains("Groups:\t77 \n"), "{log}");
    }
    spec.identity = Identity::default();
    let (_, log) = bench.run(spec).await;
    assert!(log.starts_with("0\n0\nout\n") && log.contains("CapEff:\t00000000a80425fb"), "{log}");
}

pub(crate) async fn a_working_directory_is_made_where_it_is_missing() {
    let bench = Bench::new().await;
    if !bench.has("mount") {
        return;
    }
    let mut spec = bench.script("pwd");
    spec.working_directory = "/made/here".into();
    let (exit, log) = bench.run(spec).await;
    assert_eq!((exit.code, log.as_str()), (0, "/made/here\n"));
    assert!(!Path::new("/made").exists());
}
