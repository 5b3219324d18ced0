//! `kubewright controllers` on an API server in which nothing acts.

use std::process::{Child, Command};

use kubewright_tests::{Up, needed};

use crate::golden;

#[test]
#[ignore = "needs Python: cargo xtask test"]
fn controllers_apart_from_the_api_server_do_the_same_under_rights_of_their_own() {
    let arguments = ["--nodes", "0", "--controllers", "", "--data", "data", "--kubernetes-version", "1.36"];
    let up = Up::start("apart", &arguments);
    let mut controllers = Controllers::start(&up);
    let (failed, told) = golden::hold_those_of_controllers(&up);
    assert!(failed.is_empty(), "{told}");
    controllers.end();
}

/// The controllers, the scheduler and two nodes, with the keys of the API server.
struct Controllers(Child);

impl Controllers {
    fn start(up: &Up) -> Self {
        let credentials = up.kubeconfig().with_file_name("data").join("credentials");
        let mut command = Command::new(needed("KUBEWRIGHT"));
        command.arg("controllers").arg("--kubeconfig").arg(up.kubeconfig());
        command.args([
            "--scheduler",
            "--nodes",
            "2",
            "--manage-all-nodes",
            "--use-service-account-credentials",
        ]);
        let files = [
            ("--service-account-private-key-file", "sa.key"),
            ("--root-ca-file", "ca.crt"),
            ("--cluster-signing-cert-file", "ca.crt"),
            ("--cluster-signing-key-file", "ca.key"),
        ];
        for (flag, file) in files {
            command.arg(flag).arg(credentials.join(file));
        }
        Self(command.spawn().expect("the controllers start"))
    }

    /// They are still there, and end when they are asked to.
    fn end(&mut self) {
        assert!(self.0.try_wait().expect("a process").is_none(), "they have ended by themselves");
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|killed| killed.success()));
        assert!(self.0.wait().expect("a process").success());
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
