//! What holds of the protobuf messages of all kinds.

use kubewright_codec::protobuf::ObjectType;
use kubewright_codec::protobuf::table::{Field, Form, Message, Type};
use kubewright_schema::{Additional, Node};
use kubewright_spec::Version;

use crate::{Kinds, Subresource};

#[test]
fn every_field_of_the_table_is_a_field_of_its_kind() {
    fn check(message: &'static Message, node: &Node, seen: &mut Vec<*const Message>) {
        if seen.contains(&std::ptr::from_ref(message)) {
            return;
        }
        seen.push(message);
        fields(message, node.target(), seen);
    }
    fn fields(message: &'static Message, node: &Node, seen: &mut Vec<*const Message>) {
        for Field { name, form, .. } in message.fields() {
            let of = match *form {
                Form::Inlined(inner) => {
                    fields(inner, node, seen);
                    continue;
                }
                Form::One { of, .. } | Form::List(of) | Form::Map(of) => of,
            };
            // The messages are those of the newest version.
            let mut known = kubewright_spec::fields_of(Version::default(), message.name());
            if !known.any(|field| field.name == *name) {
                continue;
            }
            let field = node.properties.get(*name).unwrap_or_else(|| panic!("{:?}.{name}", node.name));
            let values = match (&field.items, &field.additional) {
                (Some(items), _) => items,
                (None, Additional::Of(values)) => values,
                _ => field,
            };
            if let Type::Message(inner) = of {
                check(inner, values, seen);
            }
        }
    }
    let kinds = Kinds::built_in();
    for kind in kinds.iter() {
        let of = ObjectType::of(&kind.group, &kind.version, &kind.kind)
            .unwrap_or_else(|| panic!("no message for {kind:?}"));
        // By which the tests of the codec know the messages of kinds, each of which they try.
        assert!(of.message().fields().iter().any(|field| field.name == "metadata"), "{kind:?}");
        check(of.message(), kind.schema().root(), &mut Vec::new());
        for (group, version, kind) in kind
            .subresources
            .iter()
            .filter_map(Subresource::body_kind)
            .filter(|body| !body.2.ends_with("Options"))
        {
            assert!(ObjectType::of(group, version, kind).is_some(), "no message for {kind}");
        }
    }
}
