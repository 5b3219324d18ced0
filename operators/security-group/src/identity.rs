//! Which group of the cloud is a SecurityGroup's: by ID, and by marks that no name can counterfeit.
//!
//! The ID is in the status. Should it get lost, or never have arrived, the group is found by what the operator wrote on it:
//! its description, which a group has from the moment that it is there, and a tag, which survives a new description.

use std::collections::BTreeSet;

use kube::ResourceExt;

use crate::{
    SecurityGroup,
    cloud::{CloudError, Group, Neutron},
};

/// The tag of a group that the operator made, in front of the uid of the SecurityGroup.
const OWNED: &str = "k8s-securitygroup=";
/// The tag of a group that it took over.
const ADOPTED: &str = "k8s-securitygroup-user=";

/// What the operator writes on a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The description of a group that it makes.
    pub description: String,
    owned: String,
    adopted: String,
}

/// Which group is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// This one.
    Found(Box<Found>),
    /// There is none, and one may be made.
    Absent,
    /// There is none, and none may be made, or it is not clear which one; a word and a text say why.
    Refused(&'static str, String),
}

/// The group that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The group.
    pub group: Group,
    /// Whether it was there before the operator.
    pub adopted: bool,
    /// Further groups that the operator made for the same object, when an answer was lost.
    pub surplus: Vec<Group>,
}

impl Marks {
    /// The marks of the groups of `object`.
    #[must_use]
    pub fn of(object: &SecurityGroup) -> Self {
        let uid = object.uid().unwrap_or_default();
        let place = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        // Neutron takes 255 characters.
        let place: String = place.chars().take(180).collect();
        Self {
            description: format!("SecurityGroup {place} of Kubernetes, uid {uid}"),
            owned: format!("{OWNED}{uid}"),
            adopted: format!("{ADOPTED}{uid}"),
        }
    }

    /// The tags that a group is to have beside those that others gave it.
    #[must_use]
    pub fn tags(&self, group: &Group, adopted: bool) -> BTreeSet<String> {
        let mut tags = self.without(group);
        tags.insert(if adopted { self.adopted.clone() } else { self.owned.clone() });
        tags
    }

    /// The tags of a group without those of this object.
    #[must_use]
    pub fn without(&self, group: &Group) -> BTreeSet<String> {
        group.tags.iter().filter(|tag| **tag != self.owned && **tag != self.adopted).cloned().collect()
    }

    /// The tag of the groups that the operator makes for this object.
    #[must_use]
    pub fn owned(&self) -> &str {
        &self.owned
    }

    /// Another object that has this group, by its tag.
    fn other_owner(&self, group: &Group) -> Option<String> {
        let is_mark = |tag: &&String| tag.starts_with(OWNED) || tag.starts_with(ADOPTED);
        self.without(group).iter().find(is_mark).cloned()
    }

    /// Whether the operator made it for this object.
    fn is_made(&self, group: &Group) -> bool {
        group.tags.contains(&self.owned) || group.description.as_ref() == Some(&self.description)
    }
}

/// Looks for the group of `object`: with one request as a rule.
///
/// # Errors
/// [`CloudError`]: then nothing is known, and nothing must be made.
pub async fn find(neutron: &Neutron, object: &SecurityGroup) -> Result<Identity, CloudError> {
    let (spec, status) = (&object.spec, object.status.clone().unwrap_or_default());
    let marks = Marks::of(object);
    if let Some(id) = &spec.id {
        let id = id.to_ascii_lowercase();
        return Ok(match neutron.group(&id).await? {
            Some(group) => adopt(&marks, group),
            None => {
                Identity::Refused("GroupNotFound", format!("there is no group {id}: none is made instead"))
            }
        });
    }
    if let (true, Some(id)) = (status.adopted, &status.id)
        && let Some(group) = neutron.group(id).await?
    {
        return Ok(adopt(&marks, group));
    }
    let mut made = neutron.groups_described(&marks.description).await?;
    if let Some(id) = &status.id
        && !status.adopted
        && made.iter().all(|group| group.id != *id)
    {
        made.extend(neutron.group(id).await?);
    }
    if made.is_empty() {
        made = neutron.groups_tagged(&marks.owned).await?;
    }
    if let Some(found) = choose(&marks, made, status.id.as_deref()) {
        return Ok(Identity::Found(Box::new(found)));
    }
    if !spec.adopt_existing {
        return Ok(Identity::Absent);
    }
    let mut named = neutron.groups_named(&spec.name).await?;
    match (named.pop(), named.len()) {
        (None, _) => Ok(Identity::Absent),
        (Some(only), 0) => Ok(adopt(&marks, only)),
        (Some(last), _) => {
            let ids: Vec<&str> = named.iter().chain([&last]).map(|group| group.id.as_str()).collect();
            let message = format!(
                "more than one group is called {:?}: name one by spec.id: {}",
                spec.name,
                ids.join(", ")
            );
            Ok(Identity::Refused("AmbiguousName", message))
        }
    }
}

fn adopt(marks: &Marks, group: Group) -> Identity {
    match marks.other_owner(&group) {
        None => Identity::Found(Box::new(Found { group, adopted: true, surplus: Vec::new() })),
        Some(tag) => {
            let message =
                format!("group {} belongs to another SecurityGroup: its tag {tag} says so", group.id);
            Identity::Refused("GroupTaken", message)
        }
    }
}

/// The known one of the groups that were made, or the oldest: whoever looks chooses the same.
fn choose(marks: &Marks, mut made: Vec<Group>, known: Option<&str>) -> Option<Found> {
    made.sort_by(|a, b| {
        let rank =
            |group: &Group| (Some(group.id.as_str()) != known, group.created_at.clone(), group.id.clone());
        rank(a).cmp(&rank(b))
    });
    made.dedup_by(|a, b| a.id == b.id);
    let mut made = made.into_iter();
    let group = made.next()?;
    // What somebody has taken the marks off is not ours to delete.
    let surplus = made.filter(|group| marks.is_made(group)).collect();
    Some(Found { group, adopted: false, surplus })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> Marks {
        let mut object = SecurityGroup::new("x", crate::SecurityGroupSpec::default());
        object.metadata.namespace = Some("default".to_owned());
        object.metadata.uid = Some("12345678-1234-1234-1234-123456789012".to_owned());
        Marks::of(&object)
    }

    fn made(id: &str, at: &str) -> Group {
        Group {
            id: id.to_owned(),
            created_at: Some(at.to_owned()),
            description: Some(marks().description),
            ..Group::default()
        }
    }

    #[test]
    fn the_known_group_is_chosen_and_else_the_oldest() {
        let all = || vec![made("b", "2"), made("c", "1"), made("a", "2")];
        let chosen = |known| {
            let found = choose(&marks(), all(), known).expect("one of them");
            (found.group.id, found.surplus.into_iter().map(|group| group.id).collect::<Vec<_>>())
        };
        assert_eq!(chosen(None), ("c".to_owned(), vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(chosen(Some("b")), ("b".to_owned(), vec!["c".to_owned(), "a".to_owned()]));
        assert_eq!(choose(&marks(), Vec::new(), Some("b")), None);
    }

    #[test]
    fn a_group_without_marks_is_never_surplus() {
        let mut theirs = made("b", "2");
        theirs.description = None;
        let found = choose(&marks(), vec![made("a", "1"), theirs], None).expect("one of them");
        assert_eq!((found.group.id.as_str(), found.surplus.len()), ("a", 0));
    }

    #[test]
    fn marks_are_added_and_taken_away_beside_those_of_others() {
        let mut group = made("a", "1");
        group.tags.insert("theirs".to_owned());
        let tags = marks().tags(&group, true);
        assert_eq!(tags.len(), 2);
        assert!(tags.iter().all(|tag| tag.len() <= 60), "older clouds take 60 characters: {tags:?}");
        let tagged = Group { tags, ..group.clone() };
        assert_eq!(marks().without(&tagged), group.tags);
        assert_eq!(marks().other_owner(&tagged), None);
        let mut other = tagged;
        other.tags.insert(format!("{OWNED}somebody"));
        assert!(matches!(adopt(&marks(), other), Identity::Refused("GroupTaken", _)));
    }

    /// Neutron's limit is 255 characters.
    #[test]
    fn the_description_fits_whatever_the_name() {
        let mut object = SecurityGroup::new(&"x".repeat(253), crate::SecurityGroupSpec::default());
        object.metadata.namespace = Some("n".repeat(63));
        object.metadata.uid = Some("u".repeat(36));
        assert!(Marks::of(&object).description.len() <= 255);
    }
}
