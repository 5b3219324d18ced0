//! The files of a new kind.

use crate::{
    Project, built_in,
    change::File,
    names::Version,
    project::{Body, Image, Origin, Resource},
    templates::{fill, rust},
};

/// A name that is longer has no room for `-deployment` in a label (`apimachinery/pkg/api/validate/content`: 63 bytes).
const NAME_MAX: usize = 63 - "-deployment".len();

/// The files of a kind that the project has now: its types, its controller, a sample and tests.
pub(crate) fn files(project: &Project, resource: &Resource) -> Vec<File> {
    let places = Places::of(project, resource);
    let mut files = Vec::new();
    let (types, sample) =
        template(project, resource).map_or((None, None), |[one, two]| (Some(one), Some(two)));
    files.extend(types);
    if resource.controller {
        let text = match (&resource.body, resource.origin) {
            (_, Origin::BuiltIn) => places.fill(include_str!("../templates/kind/controller_built_in.rs")),
            (_, Origin::Imported) => places.fill(include_str!("../templates/kind/controller_imported.rs")),
            (Body::None | Body::Empty, _) => {
                places.fill(include_str!("../templates/kind/controller_empty.rs"))
            }
            (body, _) => controller(&places, resource, body),
        };
        files.push(File::new(format!("{}/controller.rs", resource.folder()), rust(project, &text)));
    }
    files.extend(sample);
    files.push(File::new(
        format!("tests/it/{}.rs", resource.file_name()),
        rust(project, &test(&places, resource)),
    ));
    files
}

/// The types and the sample of its stored version as they begin, if it is the project's own.
pub(crate) fn template(project: &Project, resource: &Resource) -> Option<[File; 2]> {
    let places = Places::of(project, resource);
    let version = &resource.hub;
    resource.origin.is_own().then(|| {
        [
            File::new(types_path(resource, version), rust(project, &types(&places, resource))),
            File::new(sample_path(resource, version), sample(&places, resource)),
        ]
    })
}

/// The tests of a further version.
pub(crate) fn version_test(project: &Project, resource: &Resource, version: &Version) -> File {
    let of_version = Resource { hub: version.clone(), ..resource.clone() };
    let text = Places::of(project, &of_version).fill(include_str!("../templates/tests/version.rs"));
    File::new(format!("tests/it/{}_{version}.rs", resource.file_name()), rust(project, &text))
}

/// The file of a webhook that fills in.
pub(crate) fn defaulting(project: &Project, resource: &Resource) -> File {
    let text = Places::of(project, resource).fill(include_str!("../templates/kind/defaulting.rs"));
    File::new(format!("{}/defaulting.rs", resource.folder()), rust(project, &text))
}

/// The file of a webhook that refuses.
pub(crate) fn validation(project: &Project, resource: &Resource) -> File {
    let text = Places::of(project, resource).fill(include_str!("../templates/kind/validation.rs"));
    File::new(format!("{}/validation.rs", resource.folder()), rust(project, &text))
}

/// Where the types of a version are.
pub(crate) fn types_path(resource: &Resource, version: &Version) -> String {
    format!("{}/{version}.rs", resource.folder())
}

/// Where the sample of a version is.
pub(crate) fn sample_path(resource: &Resource, version: &Version) -> String {
    format!("config/samples/{}", sample_name(resource, version))
}

/// What the sample of a version is called.
pub(crate) fn sample_name(resource: &Resource, version: &Version) -> String {
    format!("{}_{version}_{}.yaml", resource.group, resource.kind.lower())
}

/// What is filled into all templates of a kind.
pub(crate) struct Places(Vec<(&'static str, String)>);

impl Places {
    pub(crate) fn of(project: &Project, resource: &Resource) -> Self {
        let k8s = built_in::find(&resource.group, &resource.hub, &resource.kind);
        Self(vec![
            ("Kind", resource.kind.to_string()),
            ("lower", resource.kind.lower()),
            ("plural", resource.plural.to_string()),
            ("version", resource.hub.to_string()),
            ("api_group", project.api_group(resource)),
            ("module", resource.module()),
            ("controller", resource.controller_name(project)),
            ("name", project.project_name.to_string()),
            ("crate", project.project_name.crate_name()),
            ("sample", sample_path(resource, &resource.hub)),
            ("k8s_module", k8s.map(|(_, module)| module.to_owned()).unwrap_or_default()),
        ])
    }

    pub(crate) fn fill(&self, template: &str) -> String {
        self.fill_with(template, &[])
    }

    /// With further places, which may have places in them.
    pub(crate) fn fill_with(&self, template: &str, more: &[(&str, &str)]) -> String {
        let places: Vec<(&str, &str)> = self.0.iter().map(|(name, value)| (*name, value.as_str())).collect();
        fill(&fill(template, more), &places)
    }
}

fn types(places: &Places, resource: &Resource) -> String {
    let rule = format!(
        "    // The name of its Deployment is a label too, of at most 63 letters.\n    \
         validation = Rule::new(\"size(self.metadata.name) <= {NAME_MAX}\")\n        \
         .message(\"must have at most {NAME_MAX} letters\"),\n"
    );
    let (fields, functions) = match &resource.body {
        Body::Image(image) => image_fields(image),
        Body::None | Body::Empty | Body::Example => (FOO.to_owned(), String::new()),
    };
    places.fill_with(
        include_str!("../templates/kind/types.rs"),
        &[
            ("scope", if resource.namespaced { "    namespaced,\n" } else { "" }),
            ("rule", if matches!(resource.body, Body::None | Body::Empty) { "" } else { &rule }),
            ("fields", &fields),
            ("functions", &functions),
        ],
    )
}

const FOO: &str = "    /// An example of a field: put yours here.
    #[serde(default, skip_serializing_if = \"Option::is_none\")]
    pub foo: Option<String>,
";

fn image_fields(image: &Image) -> (String, String) {
    let fields = "    /// How many pods there are.
    #[serde(default = \"one\")]
    #[schemars(range(min = 0))]
    pub size: i32,
    /// What they run.
    #[serde(default = \"image\")]
    pub image: String,
";
    let functions = format!(
        "\nfn one() -> i32 {{\n    1\n}}\n\nfn image() -> String {{\n    {:?}.to_owned()\n}}\n",
        image.image
    );
    (fields.to_owned(), functions)
}

fn controller(places: &Places, resource: &Resource, body: &Body) -> String {
    let (replicas, container) = match body {
        Body::Image(image) => ("object.spec.size", image_container(resource, image)),
        Body::None | Body::Empty | Body::Example => (
            "1",
            "        name: \"nginx\".to_owned(),\n        image: Some(\"nginx\".to_owned()),\n".to_owned(),
        ),
    };
    let imports = match body {
        Body::Image(image) if image.port.is_some() => {
            "Capabilities, Container, ContainerPort, PodSpec, PodTemplateSpec, SecurityContext"
        }
        Body::Image(_) => "Capabilities, Container, PodSpec, PodTemplateSpec, SecurityContext",
        Body::None | Body::Empty | Body::Example => "Container, PodSpec, PodTemplateSpec",
    };
    let (constants, namespace) = if resource.namespaced {
        ("", "object.namespace()")
    } else {
        (
            "\n/// Where the Deployments are: what is in no namespace itself may own what is in any.\nconst NAMESPACE: &str = \"default\";\n",
            "Some(NAMESPACE.to_owned())",
        )
    };
    places.fill_with(
        include_str!("../templates/kind/controller_example.rs"),
        &[
            ("imports", imports),
            ("replicas", replicas),
            ("container", &container),
            ("constants", constants),
            ("namespace", namespace),
        ],
    )
}

fn image_container(resource: &Resource, image: &Image) -> String {
    let mut text = format!(
        "        name: {:?}.to_owned(),\n        image: Some(object.spec.image.clone()),\n",
        resource.kind.lower()
    );
    if let Some(port) = image.port {
        text += &format!(
            "        ports: Some(vec![ContainerPort {{\n            container_port: {port},\n            \
             ..ContainerPort::default()\n        }}]),\n"
        );
    }
    let user =
        image.run_as_user.map(|user| format!("            run_as_user: Some({user}),\n")).unwrap_or_default();
    text + &format!(
        "        security_context: Some(SecurityContext {{\n            run_as_non_root: Some(true),\n{user}            \
         allow_privilege_escalation: Some(false),\n            capabilities: Some(Capabilities {{\n                \
         drop: Some(vec![\"ALL\".to_owned()]),\n                ..Capabilities::default()\n            }}),\n            \
         ..SecurityContext::default()\n        }}),\n"
    )
}

fn sample(places: &Places, resource: &Resource) -> String {
    let values = match &resource.body {
        Body::Image(image) => format!("  size: 2\n  image: {:?}\n", image.image),
        Body::None | Body::Empty | Body::Example => "  foo: bar\n".to_owned(),
    };
    places.fill_with(include_str!("../templates/kind/sample.yaml"), &[("values", &values)])
}

fn test(places: &Places, resource: &Resource) -> String {
    match (&resource.body, resource.origin) {
        (_, Origin::BuiltIn | Origin::Imported) => {
            places.fill(include_str!("../templates/tests/built_in.rs"))
        }
        (Body::None | Body::Empty, _) => {
            let (done, is_done) = match resource.body {
                Body::None => ("kept", "_eq!(sample.spec.foo.as_deref(), Some(\"bar\")"),
                _ => (
                    "ready",
                    "!(kubewright::conditions::is_true(&sample.status.unwrap_or_default().conditions, \"Ready\")",
                ),
            };
            places.fill_with(
                include_str!("../templates/tests/empty.rs"),
                &[("done", done), ("is_done", is_done)],
            )
        }
        (Body::Example | Body::Image(_), _) => places.fill(include_str!("../templates/tests/example.rs")),
    }
}
