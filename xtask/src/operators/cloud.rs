//! What the SecurityGroup operator shows of itself with its sample on OpenStack's own servers.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    program::Place,
    proof::{ALL, Seen, text},
};
use crate::{
    kubectl::{Inside, eventually},
    openstack::OpenStack,
};

/// The name of the sample's group.
const GROUP: &str = "sg-test";
/// The node that the sample selects.
const NODE: &str = "kubewright-openstack";

/// Boots a server that is a node, has it put into the group of the sample, takes it out by hand, has it put back, and
/// deletes the sample.
///
/// # Errors
/// When something else happens, or nothing.
pub(super) fn show(cloud: &OpenStack, inside: &Inside<'_>, place: &Place, sample: &str) -> Result<Seen> {
    let server = boot(cloud)?;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {"node-role.kubernetes.io/master": ""}},
        "spec": {"providerID": format!("openstack:///{server}")},
    });
    place.create(inside, &node)?;
    let seen = show_with(cloud, inside, sample, &server);
    inside.run(&["delete", "node", NODE])?;
    cloud.ask("DELETE", "nova", &format!("/servers/{server}"), None)?;
    seen
}

fn show_with(cloud: &OpenStack, inside: &Inside<'_>, sample: &str, server: &str) -> Result<Seen> {
    inside.run(&["apply", "--validate=strict", "-f", sample])?;
    let group = eventually("the server is in the group", || {
        let object: Value = serde_json::from_str(&inside.run(&["get", "-f", sample, "-o", "json"])?)?;
        let is_in = object["status"]["attached"] == "1/1";
        is_in.then(|| text(&object, "/status/id")).transpose()
    })?;
    if groups_of(cloud, server)?.1.iter().all(|one| *one != group) {
        bail!("the status says that the server is in the group, and the cloud that it is not");
    }
    let (port, groups) = groups_of(cloud, server)?;
    let others: Vec<&String> = groups.iter().filter(|one| **one != group).collect();
    let change = json!({"port": {"security_groups": others}});
    cloud.ask("PUT", "neutron", &format!("/v2.0/ports/{port}"), Some(&change))?;
    eventually("the server is back in the group", || {
        let (_, now) = groups_of(cloud, server)?;
        Ok((now.contains(&group) && others.iter().all(|one| now.contains(*one))).then_some(()))
    })?;
    inside.run(&["delete", "--timeout=90s", "-f", sample])?;
    let left = cloud.ask("GET", "neutron", &format!("/v2.0/security-groups?name={GROUP}"), None)?;
    if left["security_groups"] != json!([]) {
        bail!("the group is left behind: {left}");
    }
    eventually("nothing is left", || Ok(inside.all(ALL)?.is_empty().then_some(())))?;
    Ok(Seen {
        made: "a group in the cloud with the server of the selected node in it".to_owned(),
        deleted: "the server is taken out of the group, and is back".to_owned(),
        gone: "nothing is left, in the cloud neither".to_owned(),
        refused: 0,
    })
}

/// A server of Nova's, once it is active.
fn boot(cloud: &OpenStack) -> Result<String> {
    let first = |service: &str, path: &str, pointer: &str| -> Result<String> {
        text(&cloud.ask("GET", service, path, None)?, pointer)
    };
    let server = json!({"server": {
        "name": NODE,
        "flavorRef": first("nova", "/flavors", "/flavors/0/id")?,
        "imageRef": first("glance", "/v2/images", "/images/0/id")?,
        "networks": [{"uuid": first("neutron", "/v2.0/networks?name=shared", "/networks/0/id")?}],
    }});
    let server = text(&cloud.ask("POST", "nova", "/servers", Some(&server))?, "/server/id")?;
    eventually("the server is active", || {
        let now = cloud.ask("GET", "nova", &format!("/servers/{server}"), None)?;
        Ok((now["server"]["status"] == "ACTIVE").then_some(()))
    })?;
    Ok(server)
}

/// The port of a server, and the groups that it is in.
fn groups_of(cloud: &OpenStack, server: &str) -> Result<(String, Vec<String>)> {
    let ports = cloud.ask("GET", "neutron", &format!("/v2.0/ports?device_id={server}"), None)?;
    let port = ports["ports"].get(0).context("it has a port")?;
    Ok((text(port, "/id")?, serde_json::from_str(&port["security_groups"].to_string())?))
}
