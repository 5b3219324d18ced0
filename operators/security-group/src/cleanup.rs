//! What happens before a SecurityGroup goes: its servers leave the group, and the group goes too if it was made for it.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use kubewright::{Context, Error, EventType};

use crate::{
    DeletionPolicy, SecurityGroup, SecurityGroupStatus,
    cloud::{CloudError, Group, Neutron},
    identity::Marks,
    membership::{Desired, Ours, membership},
    pass::ports,
};

/// For how long a request for a group, whose answer nobody has heard, may still be on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(45);

/// Takes the servers out of the group of `object`, and deletes it unless it is to be kept. Does no harm when done twice.
pub(crate) async fn clean_up(ctx: &Context, object: &SecurityGroup, neutron: &Neutron) -> Result<(), Error> {
    let status = object.status.clone().unwrap_or_default();
    let marks = Marks::of(object);
    let groups = groups(neutron, &status, &marks).await.map_err(Error::new)?;
    if groups.is_empty() {
        if let Some(since) = &status.creating_since
            && ctx.world().clock.now().duration_since(since.0)
                < SignedDuration::try_from(ON_ITS_WAY).unwrap_or_default()
        {
            return Err(Error::new("a request for a new group may still be on its way: it is waited for"));
        }
        if let Some(id) = &status.id {
            let note = format!("SecurityGroup {id} is already deleted");
            ctx.event(object, EventType::Normal, "SecurityGroupAlreadyDeleted", &note);
        }
    }
    let policy = object.spec.deletion_policy.unwrap_or(match status.adopted {
        true => DeletionPolicy::Retain,
        false => DeletionPolicy::Delete,
    });
    for group in &groups {
        leave(ctx, object, neutron, group).await?;
        let done = match policy {
            DeletionPolicy::Retain => {
                neutron.tag_group(&group.id, &marks.without(group)).await.map_err(|error| error.to_string())
            }
            DeletionPolicy::Delete => delete(neutron, group).await,
        };
        if let Err(error) = done {
            let note = format!("SecurityGroup {}: {error}", group.id);
            ctx.event(object, EventType::Warning, "FailureDeleteSecurityGroup", &note);
            return Err(Error::new(note));
        }
    }
    if !groups.is_empty() {
        let done = if policy == DeletionPolicy::Delete { "Deleted" } else { "Released" };
        let ids: Vec<&str> = groups.iter().map(|group| group.id.as_str()).collect();
        let note = format!("{done} SecurityGroup {}", ids.join(", "));
        tracing::info!(name = object.spec.name, "{note}");
        ctx.event(object, EventType::Normal, "SuccessfulDeleteExternalDependency", &note);
    }
    Ok(())
}

/// The group that was taken over, or all that were made for the object.
async fn groups(
    neutron: &Neutron,
    status: &SecurityGroupStatus,
    marks: &Marks,
) -> Result<Vec<Group>, CloudError> {
    let known = match &status.id {
        Some(id) => neutron.group(id).await?,
        None => None,
    };
    if status.adopted {
        return Ok(known.into_iter().collect());
    }
    let described = neutron.groups_described(&marks.description).await?;
    let tagged = neutron.groups_tagged(marks.owned()).await?;
    let all = known.into_iter().chain(described).chain(tagged);
    let by_id: BTreeMap<String, Group> = all.map(|group| (group.id.clone(), group)).collect();
    Ok(by_id.into_values().collect())
}

/// Takes out of a group whom the operator has put there, wherever the nodes are by now.
async fn leave(ctx: &Context, object: &SecurityGroup, neutron: &Neutron, group: &Group) -> Result<(), Error> {
    let status = object.status.clone().unwrap_or_default();
    let members = neutron.ports_in_group(&group.id).await.map_err(Error::new)?;
    let members = members.into_iter().map(|port| (port.id.clone(), port)).collect();
    let is_lost = !status.adopted && status.id.as_ref() != Some(&group.id);
    let ours = match is_lost {
        true => Ours::All,
        false => Ours::These { ports: &status.ports, servers: &status.nodes },
    };
    let desired = Desired { group: &group.id, nodes: &[], filter: None, ours };
    let mut failed = None;
    for (port, done) in ports::leave(neutron, &group.id, membership(&desired, &members).leave).await {
        match done {
            Ok(()) => {
                tracing::info!("Dettach SG from Server" = port.server, "Info");
                let note = format!("Detached SecurityGroup {} from {}", group.name, port.server);
                ctx.event(object, EventType::Normal, "SuccessDetachSecurityGroup", &note);
            }
            Err(error) => {
                let note = format!("server {}, port {}: {error}", port.server, port.id);
                ctx.event(object, EventType::Warning, "FailureDetachSecurityGroup", &note);
                failed = Some(note);
            }
        }
    }
    failed.map_or(Ok(()), |note| Err(Error::new(note)))
}

/// Deletes a group; says who is in it if somebody is.
async fn delete(neutron: &Neutron, group: &Group) -> Result<(), String> {
    match neutron.delete_group(&group.id).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_in_use() => {
            let members = neutron.ports_in_group(&group.id).await.map_err(|error| error.to_string())?;
            let members: Vec<&str> = members.iter().map(|port| port.id.as_str()).take(10).collect();
            Err(format!("it is in use; ports that others have put into it: {}", members.join(", ")))
        }
        Err(error) => Err(error.to_string()),
    }
}
