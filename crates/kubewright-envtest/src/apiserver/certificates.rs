//! The server's certificate: that of `--tls-cert-file`, or the one in `--cert-dir`, where one is made if there is none
//! (`MaybeDefaultWithSelfSignedCerts` in `k8s.io/apiserver/pkg/server/options/serving.go`).

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use kubewright_control_plane::{Bundle, Endpoint, Serving, ServingCertificate};

use super::read;
use crate::flags::Flags;

/// Where kube-apiserver keeps its certificate.
const FOLDER: &str = "/var/run/kubernetes";

/// The certificate that is there, if one is, and who vouches for those of clients.
///
/// # Errors
/// When a file cannot be read, or is no certificate or key.
pub(super) fn serving(flags: &Flags) -> anyhow::Result<Serving> {
    let certificate = match (flags.text("tls-cert-file"), flags.text("tls-private-key-file")) {
        (Some(certificate), Some(key)) => {
            let text = read("tls-cert-file", certificate)?;
            let key = read("tls-private-key-file", key)?;
            Some(ServingCertificate::of_pem(&text, &key).with_context(|| certificate.to_owned())?)
        }
        (None, None) => kept(flags)?,
        _ => bail!("--tls-cert-file and --tls-private-key-file should be specified together"),
    };
    let client_ca = match flags.text("client-ca-file") {
        Some(path) => {
            let text = read("client-ca-file", path)?;
            Some(Bundle::of_pem(text.as_bytes()).with_context(|| format!("--client-ca-file: {path}"))?)
        }
        None => None,
    };
    Ok(Serving { certificate, client_ca })
}

/// The pair in `--cert-dir`; `None` unless both files are there.
fn kept(flags: &Flags) -> anyhow::Result<Option<ServingCertificate>> {
    let Some((certificate, key)) = files(flags) else { return Ok(None) };
    let text = |path: &Path| match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    };
    let (Some(text), Some(key)) = (text(&certificate)?, text(&key)?) else { return Ok(None) };
    let pair = ServingCertificate::of_pem(&text, &key).with_context(|| certificate.display().to_string())?;
    Ok(Some(pair))
}

/// Keeps the certificate that was made, and the authority's behind it, so that clients can be told to trust the file.
///
/// # Errors
/// When the folder cannot be written to.
pub(super) fn keep(flags: &Flags, endpoint: &Endpoint) -> anyhow::Result<()> {
    let Some((certificate, key)) = files(flags) else { return Ok(()) };
    let made = endpoint.certificate();
    let folder = certificate.parent().unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .and_then(|()| write(&certificate, 0o644, &(made.chain_pem() + &endpoint.ca_pem())))
        .and_then(|()| write(&key, 0o600, &made.key_pem()))
        .with_context(|| format!("error creating self-signed certificates: {}", folder.display()))
}

/// The pair in `--cert-dir`; an empty name means that nothing is kept.
fn files(flags: &Flags) -> Option<(PathBuf, PathBuf)> {
    let folder = Path::new(flags.last("cert-dir").unwrap_or(FOLDER));
    let named = !folder.as_os_str().is_empty();
    named.then(|| (folder.join("apiserver.crt"), folder.join("apiserver.key")))
}

fn write(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    options.open(path)?.write_all(text.as_bytes())
}
