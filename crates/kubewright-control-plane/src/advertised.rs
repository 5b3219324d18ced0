//! Where others are told that a server is.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// Where the Endpoints of the service `kubernetes` say that a server is which listens there, unless it is said by somebody: as with
/// kube-apiserver at the address of this machine where it listens at a loopback address or at all. Unlike there, a machine
/// without a network has no such Endpoints; that is no reason not to start.
#[must_use]
pub fn advertised(bound: SocketAddr) -> Option<SocketAddr> {
    let ip = match bound.ip() {
        ip if ip.is_unspecified() || ip.is_loopback() => of_this_machine()?,
        ip => ip,
    };
    (!ip.is_loopback()).then(|| SocketAddr::new(ip, bound.port()))
}

/// The address from which this machine would reach others: a datagram socket that is connected sends nothing, but is bound
/// to the interface of the route.
fn of_this_machine() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documentation (RFC 5737), which no machine has.
    socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    Some(ip).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_to_be_where_it_listens_and_never_at_a_loopback_address() {
        let advertised = |bound: &str| advertised(bound.parse().expect("an address"));
        assert_eq!(advertised("192.0.2.1:6443"), Some("192.0.2.1:6443".parse().expect("one")));
        for bound in ["127.0.0.1:1234", "0.0.0.0:1234", "[::1]:1234"] {
            let told = advertised(bound);
            assert!(told.is_none_or(|told| !told.ip().is_loopback() && told.port() == 1234), "{bound}");
        }
    }
}
