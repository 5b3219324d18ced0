//! What a container does to its volume while another one is started with it: nothing outside is shown, and nothing becomes
//! writable.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kubewright_kubelet::container::log::Options;
use kubewright_kubelet::container::{Mount, Runtime as _, Spec, StartError};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::support::{Bench, OUTPUT, mount, output, read};

/// How often a container is started while another one swaps files. When paths were looked up twice, one in two starts showed
/// what is outside, and one in five a volume that was to be read-only.
const STARTS: usize = 30;

/// Says at its end that all is done.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A volume that a container can write to, and a file outside of it that it must not see.
struct Shared {
    bench: Bench,
    volume: PathBuf,
    outside: PathBuf,
}

impl Shared {
    async fn new() -> Option<Self> {
        let bench = Bench::new().await;
        if !bench.has("mount") {
            return None;
        }
        let (volume, outside) = (bench.directory.join("volume"), bench.directory.join("outside"));
        for folder in ["part", "one", "two"] {
            fs::create_dir_all(volume.join(folder)).expect("a folder");
        }
        fs::create_dir(&outside).expect("a folder");
        fs::write(outside.join("token"), "administrator\n").expect("a file");
        fs::write(volume.join("part/token"), "own\n").expect("a file");
        Some(Self { bench, volume, outside })
    }

    fn spec(&self, script: &str, mounts: Vec<Mount>) -> Spec {
        let mut spec = self.bench.script(script);
        spec.mounts = mounts;
        spec
    }

    fn part(&self, sub_path: &str, target: &str) -> Mount {
        Mount { sub_path: sub_path.into(), ..mount(&self.volume, target, false) }
    }

    /// Starts a container again and again while another one swaps two names in the volume: what each start came to.
    async fn while_swapping(&self, names: [&str; 2], spec: Spec) -> Vec<Result<String, StartError>> {
        let [one, other] = names.map(|name| self.volume.join(name));
        let done = AtomicBool::new(false);
        let swap = || {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("both are there");
            }
        };
        let start = async {
            let mut outcomes = Vec::new();
            for _ in 0..STARTS {
                outcomes.push(self.outcome(spec.clone()).await);
            }
            outcomes
        };
        let runtime = tokio::runtime::Handle::current();
        std::thread::scope(|scope| {
            // Also when a start panics: the scope waits for the other thread.
            let _end = Done(&done);
            scope.spawn(swap);
            tokio::task::block_in_place(|| runtime.block_on(start))
        })
    }

    /// What a container wrote, if it started.
    async fn outcome(&self, spec: Spec) -> Result<String, StartError> {
        let log = spec.log.clone();
        self.bench.runtime.start(spec).await?.exited().await;
        Ok(read(&log, Options::default()).await)
    }
}

/// The other container's move comes after the kubelet has looked and before the runtime mounts.
pub(crate) async fn what_became_a_link_out_of_its_volume_is_not_mounted() {
    let Some(shared) = Shared::new().await else { return };
    let spec = shared.spec("cat /m/token", vec![shared.part("part", "/m")]);
    assert_eq!(shared.outcome(spec.clone()).await, Ok("own\n".to_owned()));
    fs::rename(shared.volume.join("part"), shared.volume.join("moved")).expect("it is there");
    symlink("moved", shared.volume.join("part")).expect("a link");
    assert_eq!(shared.outcome(spec.clone()).await, Ok("own\n".to_owned()), "links inside are followed");
    for target in [shared.outside.as_path(), Path::new("../outside"), Path::new("/proc/self/root")] {
        fs::remove_file(shared.volume.join("part")).expect("it is there");
        symlink(target, shared.volume.join("part")).expect("a link");
        let Err(StartError::Run(text)) = shared.outcome(spec.clone()).await else { panic!("it started") };
        assert!(text.ends_with("to rootfs at \"/m\": it leads out of its folder"), "{text}");
    }
}

pub(crate) async fn a_neighbour_that_is_fast_shows_a_container_nothing_outside_of_its_volume() {
    let Some(shared) = Shared::new().await else { return };
    symlink(&shared.outside, shared.volume.join("link")).expect("a link");
    let spec = shared.spec("cat /m/token", vec![shared.part("part", "/m")]);
    for outcome in shared.while_swapping(["part", "link"], spec).await {
        match outcome {
            Ok(seen) => assert_eq!(seen, "own\n"),
            Err(refused) => assert!(refused.to_string().contains("it leads out of its folder"), "{refused}"),
        }
    }
}

/// A volume that is read-only is mounted where links of another lead, which change before it is made so.
pub(crate) async fn a_neighbour_that_is_fast_makes_nothing_writable() {
    let Some(shared) = Shared::new().await else { return };
    for (link, target) in [("x", "one"), ("y", "two")] {
        symlink(target, shared.volume.join(link)).expect("a link");
    }
    let (kept, own) = (shared.bench.directory.join("kept"), shared.bench.directory.join("own"));
    for folder in [&kept, &own] {
        fs::create_dir(folder).expect("a folder");
    }
    let mounts =
        vec![shared.part("", "/data"), mount(&own, "/data/two", false), mount(&kept, "/data/x", true)];
    let spec = shared.spec("touch /data/one/new /data/two/new", mounts);
    for outcome in shared.while_swapping(["x", "y"], spec).await {
        outcome.expect("it starts");
        assert!(!kept.join("new").exists(), "what is read-only was written to");
    }
}

pub(crate) async fn a_mount_point_is_never_what_a_process_has_open() {
    let Some(shared) = Shared::new().await else { return };
    let own = shared.bench.directory.join("own");
    fs::create_dir(&own).expect("a folder");
    for target in ["/proc/self/root", "/proc/self/cwd", "/proc/self/exe", "/proc/self/fd/0"] {
        symlink(target, shared.volume.join("x")).expect("a link");
        let mounts = vec![shared.part("", "/data"), mount(&own, "/data/x", false)];
        let Err(StartError::Run(text)) = shared.outcome(shared.spec("true", mounts)).await else {
            panic!("it started with {target}");
        };
        assert!(text.contains("to rootfs at \"/data/x\": "), "{text}");
        fs::remove_file(shared.volume.join("x")).expect("it is there");
    }
    // Where any program in the container would be led.
    symlink("/opt/made", shared.volume.join("x")).expect("a link");
    fs::write(own.join("file"), "").expect("a file");
    let mut spec = shared.spec("ls /opt/made", vec![shared.part("", "/data"), mount(&own, "/data/x", false)]);
    spec.mounts.insert(0, mount(&shared.outside, "/opt/made", false));
    assert_eq!(shared.outcome(spec).await, Ok("file\n".to_owned()));
}

pub(crate) async fn a_working_directory_is_never_what_a_process_has_open() {
    let Some(shared) = Shared::new().await else { return };
    for (target, directory) in [("/proc/self/fd/0", "/data/x"), ("/proc/self/cwd", "/data/x/made")] {
        symlink(target, shared.volume.join("x")).expect("a link");
        let mut spec = shared.spec("pwd", vec![shared.part("", "/data")]);
        spec.working_directory = directory.into();
        let Err(StartError::Run(text)) = shared.outcome(spec).await else { panic!("it started") };
        assert!(text.contains(&format!("mkdir {directory}: ")), "{text}");
        fs::remove_file(shared.volume.join("x")).expect("it is there");
    }
}

/// As a shell leaves it open for whatever it starts.
pub(crate) async fn what_is_open_where_the_runtime_was_started_is_not_open_in_a_container() {
    let bench = Bench::new().await;
    let folder = fs::File::open(&bench.directory).expect("a folder");
    fcntl_setfd(&folder, FdFlags::empty()).expect("it is open");
    let look = format!("ls -d /proc/self/fd/{}/. 2>&1", folder.as_raw_fd());
    let container = bench.start(bench.script(&format!("{look}; sleep 60"))).await;
    let command = ["/bin/sh", "-c", &look].map(str::to_owned).to_vec();
    let mut session = container.exec(command, OUTPUT, None).await.expect("it runs");
    let seen = output(&mut session).await;
    assert!(seen.contains("No such file or directory"), "{seen}");
    container.signal(kubewright_kubelet::container::Signal::KILL);
    container.exited().await;
    let seen = read(&bench.directory.join("log"), Options::default()).await;
    assert!(seen.contains("No such file or directory"), "{seen}");
}
