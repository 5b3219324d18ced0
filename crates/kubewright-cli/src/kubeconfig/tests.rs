use kube::config::Kubeconfig;

use super::*;

/// A folder of its own for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubewright-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kubeconfig_target(path: &Path) -> KubeconfigTarget<'_> {
    KubeconfigTarget { path, flag: "--kubeconfig" }
}

fn access() -> Access {
    Access {
        server: "https://127.0.0.1:6443".to_owned(),
        ca: "the ca".to_owned(),
        token: Secret::of("the token"),
    }
}

#[test]
fn what_is_written_is_a_kubeconfig_of_this_server() {
    let folder = Folder::new("kubeconfig-read");
    let path = folder.0.join("config");
    access().write(kubeconfig_target(&path)).expect("written");
    let read = Kubeconfig::read_from(&path).expect("kube reads it");
    assert_eq!(read.current_context.as_deref(), Some("kubewright"));
    let cluster = read.clusters[0].cluster.as_ref().expect("a cluster");
    assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
    assert_eq!(cluster.certificate_authority_data, Some(STANDARD.encode("the ca")));
    let user = read.auth_infos[0].auth_info.as_ref().expect("a user");
    assert_eq!(kubewright_objects::to_value(user).expect("JSON")["token"], "the token");
}

#[cfg(unix)]
#[test]
fn only_this_user_may_read_it_also_after_it_is_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("kubeconfig-mode");
    let path = folder.0.join("config");
    for _ in 0..2 {
        access().write(kubeconfig_target(&path)).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("loosened");
    }
    access().write(kubeconfig_target(&path)).expect("written");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1, "no temporary file is left");
}

#[test]
fn a_file_that_is_not_ours_is_left_as_it_is() {
    let folder = Folder::new("kubeconfig-foreign");
    let path = folder.0.join("config");
    for foreign in ["apiVersion: v1\nkind: Config\n", "", "\u{feff}not even a kubeconfig"] {
        fs::write(&path, foreign).expect("written");
        let refused = access().write(kubeconfig_target(&path)).expect_err("refused").to_string();
        assert!(refused.contains("--kubeconfig"), "{refused}");
        assert_eq!(fs::read_to_string(&path).expect("there"), foreign);
    }
}

#[test]
fn a_folder_that_is_missing_is_told_with_the_remedy() {
    let folder = Folder::new("kubeconfig-missing");
    let path = folder.0.join("none").join("config");
    let refused = access().write(kubeconfig_target(&path)).expect_err("refused").to_string();
    assert!(refused.contains("No such file") && refused.contains("--kubeconfig"), "{refused}");
    assert!(!refused.contains('\n'));
}

#[test]
fn the_file_of_a_control_plane_that_runs_is_refused_and_left_as_it_is() {
    let folder = Folder::new("kubeconfig-live");
    let path = folder.0.join("config");
    let running = access().write(kubeconfig_target(&path)).expect("written");
    let before = fs::read_to_string(&path).expect("there");
    let other = Access { server: "https://127.0.0.1:7777".to_owned(), ..access() };
    for refused in
        [kubeconfig_target(&path).check_free().map(drop), other.write(kubeconfig_target(&path)).map(drop)]
    {
        let refused = refused.expect_err("it is in use").to_string();
        assert!(
            refused.ends_with(
                "config is the kubeconfig of a control plane that runs at https://127.0.0.1:6443: \
                 end that one, or choose another file with --kubeconfig"
            ),
            "{refused}"
        );
    }
    assert_eq!(fs::read_to_string(&path).expect("there"), before);
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1, "no temporary file is left");

    drop(running);
    kubeconfig_target(&path).check_free().expect("it has ended");
    other.write(kubeconfig_target(&path)).expect("written").remove();
    assert!(!path.exists(), "it is removed at its end");
}

#[test]
fn a_link_is_replaced_wherever_it_leads() {
    let folder = Folder::new("kubeconfig-link");
    let (path, elsewhere) = (folder.0.join("config"), folder.0.join("elsewhere"));
    for is_there in [false, true] {
        if is_there {
            drop(access().write(kubeconfig_target(&elsewhere)).expect("written"));
        }
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
        let written = access().write(kubeconfig_target(&path)).expect("written");
        assert!(!is_link(&path), "it is a file of its own");
        written.remove();
        assert!(!path.exists());
        assert_eq!(elsewhere.exists(), is_there);
    }
}

#[test]
fn only_the_file_that_was_written_is_removed() {
    let folder = Folder::new("kubeconfig-removed");
    let path = folder.0.join("config");
    let first = access().write(kubeconfig_target(&path)).expect("written");
    fs::remove_file(&path).expect("removed");
    let second = access().write(kubeconfig_target(&path)).expect("nothing is there");
    first.remove();
    assert!(path.exists(), "it is the second one's");
    second.remove();
    assert!(!path.exists());
}

#[test]
fn of_those_who_write_at_the_same_time_one_wins() {
    let folder = Folder::new("kubeconfig-race");
    let path = folder.0.join("config");
    for older in [false, true] {
        if older {
            drop(access().write(kubeconfig_target(&path)).expect("written"));
        }
        // Each in a file of its own that is put there, as by processes of their own.
        let written: Vec<_> = std::thread::scope(|scope| {
            let writers = (0..8).map(|number| {
                let (path, temporary) = (&path, folder.0.join(format!("temporary-{older}-{number}")));
                scope.spawn(move || {
                    let file = write_private(&temporary, &access().kubeconfig()).expect("written");
                    file.try_lock().expect("it is ours");
                    let done = put(&temporary, path);
                    let _ = fs::remove_file(&temporary);
                    done.map(|()| file)
                })
            });
            let writers: Vec<_> = writers.collect();
            writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
        });
        assert_eq!(written.iter().filter(|written| written.is_ok()).count(), 1, "{older}");
        let refused = written.iter().filter_map(|written| written.as_ref().err());
        assert!(refused.into_iter().all(|why| matches!(why, Why::InUse(_))), "{older}");
    }
}
