//! Ports into a group and out of it, beside others who write the same ports.

use futures::{StreamExt, stream};

use crate::{
    cloud::{CloudError, Neutron, Port},
    membership::attached,
    types::AttachedPort,
};

/// How many ports are written at the same time: one that hangs holds up none of the others.
const AT_ONCE: usize = 8;
/// How often a port that others change is tried again before the next pass does.
const TRIES: usize = 5;

/// What became of each port, in the order in which they were ready.
type Done = Vec<(AttachedPort, Result<(), CloudError>)>;

/// Puts ports into a group. A port that is gone by now is [`CloudError::is_not_found`].
pub(crate) async fn join(neutron: &Neutron, group: &str, ports: Vec<Port>) -> Done {
    each(neutron, group, ports, true).await
}

/// Takes ports out of a group. A port that is gone by now is out of it.
pub(crate) async fn leave(neutron: &Neutron, group: &str, ports: Vec<Port>) -> Done {
    each(neutron, group, ports, false).await
}

async fn each(neutron: &Neutron, group: &str, ports: Vec<Port>, is_in: bool) -> Done {
    let work = ports.into_iter().map(|port| async move {
        let name = attached(&port);
        (name, set(neutron, group, port, is_in).await)
    });
    stream::iter(work).buffer_unordered(AT_ONCE).collect().await
}

/// Makes a port be in the group or not, and leaves its other groups alone: what is written holds only if the port is still
/// as it was read.
async fn set(neutron: &Neutron, group: &str, mut port: Port, is_in: bool) -> Result<(), CloudError> {
    for _ in 0..TRIES {
        if port.security_groups.iter().any(|id| id == group) == is_in {
            return Ok(());
        }
        let mut groups = port.security_groups.clone();
        groups.retain(|id| id != group);
        groups.extend(is_in.then(|| group.to_owned()));
        match neutron.set_groups_of_port(&port.id, &groups, port.revision_number).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is_stale() => {}
            Err(error) if error.is_not_found() && !is_in => return Ok(()),
            Err(error) => return Err(error),
        }
        match (neutron.port(&port.id).await?, is_in) {
            (Some(now), _) => port = now,
            (None, false) => return Ok(()),
            (None, true) => return Err(gone(&port)),
        }
    }
    // 409 is what Neutron itself says when it cannot decide between writers.
    Err(CloudError::Refused {
        status: 412,
        kind: "PortIsBusy".to_owned(),
        message: "others change the port all the time".to_owned(),
    })
}

fn gone(port: &Port) -> CloudError {
    let message = format!("Port {} could not be found.", port.id);
    CloudError::Refused { status: 404, kind: "PortNotFound".to_owned(), message }
}
