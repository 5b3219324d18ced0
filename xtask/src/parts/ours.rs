//! `kubewright controllers` on the real kube-apiserver.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{Credentials, Programs, kubectl, port, ready, theirs::up};
use crate::{kubectl::eventually, run::run, running::Running};

/// Who shows it is an administrator; everybody is on loopback.
const TOKEN: &str = "held-on-loopback";

/// Starts both, and lets `hold` hold conversations.
pub(super) fn on_theirs(
    programs: &Programs,
    kubewright: &Path,
    folder: &Path,
    hold: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    // Keys and certificates are those that a cluster of ours makes.
    let data = folder.join("data");
    drop(up(kubewright, programs.release, folder, &data)?);
    let credentials = Credentials::of(&data);
    let (_store, _server, kubeconfig) = serve(programs, folder, &credentials)?;
    let mut controllers = Command::new(kubewright);
    controllers.arg("controllers").arg("--kubeconfig").arg(&kubeconfig);
    controllers.args([
        "--scheduler",
        "--nodes",
        "2",
        "--manage-all-nodes",
        "--use-service-account-credentials",
    ]);
    controllers.arg("--service-account-private-key-file").arg(credentials.file("sa.key"));
    controllers.arg("--root-ca-file").arg(credentials.file("ca.crt"));
    controllers.arg("--cluster-signing-cert-file").arg(credentials.file("ca.crt"));
    controllers.arg("--cluster-signing-key-file").arg(credentials.file("ca.key"));
    let mut controllers = Running::start(&mut controllers, &folder.join("controllers.log"))?;
    ready(programs, &kubeconfig)?;
    hold(&kubeconfig)?;
    controllers.end()
}

/// Starts etcd and kube-apiserver; gives a kubeconfig of an administrator.
fn serve(
    programs: &Programs,
    folder: &Path,
    credentials: &Credentials,
) -> Result<(Running, Running, PathBuf)> {
    let (clients, peers, port) = (port()?, port()?, port()?);
    let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    let tokens = folder.join("tokens.csv");
    fs::write(&tokens, format!("{TOKEN},admin,admin,system:masters\n"))?;
    let mut store = Command::new(programs.path("etcd"));
    store.arg("--data-dir").arg(folder.join("etcd")).args(["--unsafe-no-fsync", "--log-level", "warn"]);
    store.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    store.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    store.args(["--initial-cluster", &format!("default={peers}")]);
    let store = Running::start(&mut store, &folder.join("etcd.log"))?;
    let certificates = folder.join("certificates");
    let mut server = Command::new(programs.path("kube-apiserver"));
    server.args([
        "--etcd-servers",
        &clients,
        "--bind-address",
        "127.0.0.1",
        "--secure-port",
        &port.to_string(),
    ]);
    // An address of documentation: it is told in Endpoints, and never dialled.
    server.args([
        "--advertise-address",
        "192.0.2.1",
        "--authorization-mode",
        "RBAC",
        "--allow-privileged=true",
    ]);
    server.arg("--cert-dir").arg(&certificates).arg("--token-auth-file").arg(&tokens);
    server.arg("--client-ca-file").arg(credentials.file("ca.crt"));
    server.args(["--service-cluster-ip-range", "10.0.0.0/24"]);
    server.args(["--service-account-issuer", "https://kubernetes.default.svc.cluster.local"]);
    let (private, public) = (credentials.file("sa.key"), folder.join("sa.pub"));
    // kube-apiserver reads a private key in this form only to sign, not to verify.
    run(Command::new("openssl").args(["pkey", "-pubout", "-in"]).arg(&private).arg("-out").arg(&public))?;
    server.arg("--service-account-key-file").arg(&public);
    server.arg("--service-account-signing-key-file").arg(&private);
    let server = Running::start(&mut server, &folder.join("kube-apiserver.log"))?;
    let kubeconfig = folder.join("kubeconfig");
    let authority = certificates.join("apiserver.crt");
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: real\n\
         clusters: [{{name: real, cluster: {{server: \"https://127.0.0.1:{port}\", certificate-authority: \"{}\"}}}}]\n\
         users: [{{name: admin, user: {{token: {TOKEN}}}}}]\n\
         contexts: [{{name: real, context: {{cluster: real, user: admin}}}}]\n",
        authority.display()
    );
    fs::write(&kubeconfig, config)?;
    eventually("kube-apiserver is ready", || {
        Ok(kubectl(programs, &kubeconfig).args(["get", "--raw", "/readyz"]).status()?.success().then_some(()))
    })?;
    Ok((store, server, kubeconfig))
}
