//! Where the server is: `--bind-address`, `--secure-port`, `--advertise-address`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::bail;
use kubewright_control_plane::advertised;

use crate::flags::Flags;

/// The port unless another is given.
const PORT: i64 = 6443;

/// Where the server listens.
///
/// # Errors
/// When the port is none.
pub(super) fn bind(flags: &Flags) -> anyhow::Result<SocketAddr> {
    let ip = match flags.text("bind-address") {
        Some(ip) => ip.parse()?,
        None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    let port = flags.number("secure-port").unwrap_or(PORT);
    match u16::try_from(port) {
        Ok(port @ 1..) => Ok(SocketAddr::new(ip, port)),
        _ => bail!(
            "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        ),
    }
}

/// Where the Endpoints of the service `kubernetes` say that it is. Unlike kube-apiserver, a machine without a network has
/// no such Endpoints; that is no reason not to start.
///
/// # Errors
/// As [`bind`].
pub(super) fn advertise(flags: &Flags) -> anyhow::Result<Option<SocketAddr>> {
    if flags.last("endpoint-reconciler-type") == Some("none") {
        return Ok(None);
    }
    let bound = bind(flags)?;
    Ok(match flags.text("advertise-address") {
        Some(ip) => {
            Some(SocketAddr::new(ip.parse()?, bound.port())).filter(|address| !address.ip().is_loopback())
        }
        None => advertised(bound),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::KUBE_APISERVER;

    fn flags(line: &str) -> Flags {
        Flags::parse(&KUBE_APISERVER, line.split_whitespace().map(Into::into)).expect("flags")
    }

    #[test]
    fn it_listens_where_kube_apiserver_would() {
        let bind =
            |line: &str| bind(&flags(line)).map(|address| address.to_string()).map_err(|e| e.to_string());
        assert_eq!(bind(""), Ok("0.0.0.0:6443".to_owned()));
        assert_eq!(bind("--bind-address=127.0.0.1 --secure-port=1234"), Ok("127.0.0.1:1234".to_owned()));
        assert_eq!(bind("--bind-address=::1"), Ok("[::1]:6443".to_owned()));
        for port in ["0", "-1", "65536"] {
            let refused = bind(&format!("--secure-port={port}")).expect_err(port);
            assert!(
                refused.starts_with(&format!("--secure-port {port} must be between 1 and 65535")),
                "{refused}"
            );
        }
    }

    #[test]
    fn endpoints_never_lead_to_a_loopback_address() {
        let advertise = |line: &str| advertise(&flags(line)).expect("an address, or none");
        assert_eq!(advertise("--advertise-address=192.0.2.1"), Some("192.0.2.1:6443".parse().expect("one")));
        assert_eq!(advertise("--bind-address=192.0.2.1"), Some("192.0.2.1:6443".parse().expect("one")));
        assert_eq!(advertise("--advertise-address=192.0.2.1 --endpoint-reconciler-type=none"), None);
        assert_eq!(advertise("--advertise-address=127.0.0.1"), None);
        assert!(advertise("--bind-address=127.0.0.1").is_none_or(|found| !found.ip().is_loopback()));
    }
}
