//! From an async function to a test.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, FnArg, Ident, ItemFn, Result, spanned::Spanned};

use crate::arguments::{Arguments, Faults, Kubernetes, Seeds};

/// The attribute's work.
pub(crate) fn test(arguments: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = syn::parse2(arguments)?;
    let function: ItemFn = syn::parse2(function)?;
    check(&function)?;
    let name = &function.sig.ident;
    let call = match function.sig.inputs.is_empty() {
        true => quote!(|_| body()),
        false => quote!(body),
    };
    let body = body(&function);
    let test = |name: &Ident, version: Option<&'static str>| {
        let (attributes, settings) = (&function.attrs, settings(&arguments, name, version));
        quote! {
            #(#attributes)*
            #[::core::prelude::v1::test]
            fn #name() {
                #body
                ::kubewright::testing::harness::run(&#settings, #call)
            }
        }
    };
    let simulated = match &arguments.kubernetes {
        Kubernetes::Default => test(name, None),
        Kubernetes::One(version) => test(name, Some(version)),
        Kubernetes::Each(versions) => {
            let named = |version: &&str| format_ident!("{name}_{}", version.to_lowercase());
            versions.iter().map(|version| test(&named(version), Some(version))).collect()
        }
    };
    if !arguments.real {
        return Ok(simulated);
    }
    let real = format_ident!("{name}_real");
    let attributes = function.attrs.iter().filter(|attribute| !attribute.path().is_ident("ignore"));
    let settings = settings(&arguments, name, None);
    Ok(quote! {
        #simulated

        #(#attributes)*
        #[::core::prelude::v1::test]
        #[ignore = "needs a cluster: KUBEWRIGHT_TEST_KUBECONFIG=<file> cargo test -- --ignored"]
        fn #real() {
            #body
            ::kubewright::testing::harness::run_real(&#settings, #call)
        }
    })
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(
            signature.fn_token.span(),
            "a test with a cluster is `async`: write `async fn`",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(signature.generics.span(), "a test has no generic parameters"));
    }
    let receiver = signature.inputs.iter().find(|input| matches!(input, FnArg::Receiver(_)));
    if let Some(receiver) = receiver {
        return Err(Error::new(receiver.span(), "a test is a function of a module, not of a type"));
    }
    if let Some(second) = signature.inputs.iter().nth(1) {
        let why =
            "a test takes the cluster, or nothing: `cluster: Cluster`; what else it needs it makes itself";
        return Err(Error::new(second.span(), why));
    }
    let is_test = |attribute: &&syn::Attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
    };
    match function.attrs.iter().find(is_test) {
        Some(other) => {
            Err(Error::new(other.span(), "`#[kubewright::test]` makes it a test already: remove this one"))
        }
        None => Ok(()),
    }
}

/// The function itself, within the test.
fn body(function: &ItemFn) -> TokenStream {
    let (inputs, output, block) = (&function.sig.inputs, &function.sig.output, &function.block);
    quote!(async fn body(#inputs) #output #block)
}

/// What the harness is told of it.
fn settings(arguments: &Arguments, name: &Ident, version: Option<&str>) -> TokenStream {
    let Arguments { controllers, nodes, namespaces, seeds, faults, .. } = arguments;
    let seeds = match seeds {
        Seeds::One(seed) => quote!(One(#seed)),
        Seeds::First(number) => quote!(First(#number)),
    };
    let faults = match faults {
        Faults::None => quote!(None),
        Faults::All => quote!(All),
        Faults::Only(names) => quote!(Only(&[#(#names),*])),
    };
    let version = match version.map(|version| format_ident!("{version}")) {
        Some(version) => {
            quote!(::core::option::Option::Some(::kubewright::testing::KubernetesVersion::#version))
        }
        None => quote!(::core::option::Option::None),
    };
    let name = name.to_string();
    quote! {
        ::kubewright::testing::harness::Test {
            package: ::core::env!("CARGO_PKG_NAME"),
            module: ::core::module_path!(),
            name: #name,
            controllers: #controllers,
            kubernetes: #version,
            nodes: #nodes,
            namespaces: &[#(#namespaces),*],
            seeds: ::kubewright::testing::harness::Seeds::#seeds,
            faults: ::kubewright::testing::harness::Faults::#faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(arguments: &str, function: &str) -> Result<String> {
        let parse = |text: &str| text.parse::<TokenStream>().expect("tokens");
        test(parse(arguments), parse(function)).map(|tokens| tokens.to_string().replace(' ', ""))
    }

    #[test]
    fn a_body_may_take_the_cluster_and_return_a_result() {
        let one = expand("nodes = 3", "async fn it(cluster: Cluster) -> Result<(), Error> { Ok(()) }")
            .expect("fine");
        assert!(one.contains("asyncfnbody(cluster:Cluster)->Result<(),Error>{Ok(())}"), "{one}");
        assert!(one.contains("nodes:3usize") && one.ends_with(",body)}"), "{one}");
        let none = expand("", "#[should_panic] async fn it() {}").expect("fine");
        assert!(none.starts_with("#[should_panic]") && none.ends_with(",|_|body())}"), "{none}");
        assert!(!none.contains("_real"), "{none}");
    }

    #[test]
    fn a_real_cluster_has_a_test_of_its_own_that_is_ignored() {
        let both = expand("real = true", "#[ignore] async fn it(c: Cluster) {}").expect("fine");
        assert_eq!(both.matches("#[ignore").count(), 2, "{both}");
        assert!(both.contains("fnit_real()") && both.contains("run_real("), "{both}");
    }

    #[test]
    fn each_version_of_a_list_has_a_test_that_is_named_after_it() {
        let one = expand(r#"kubernetes = "1.35""#, "async fn it() {}").expect("fine");
        assert!(one.contains("fnit()") && one.contains("KubernetesVersion::V1_35)"), "{one}");
        let each = expand(r#"kubernetes = ["1.35", "1.37"], seeds = 3"#, "#[ignore] async fn it() {}")
            .expect("fine");
        for (name, version) in [("it_v1_35", "V1_35"), ("it_v1_37", "V1_37")] {
            assert!(
                each.contains(&format!("fn{name}()")) && each.contains(&format!("name:\"{name}\"")),
                "{each}"
            );
            assert!(each.contains(&format!("KubernetesVersion::{version})")), "{each}");
        }
        assert_eq!(
            (each.matches("#[ignore]").count(), each.matches("Seeds::First(3u64)").count()),
            (2, 2),
            "{each}"
        );
        assert!(!each.contains("fnit()"), "{each}");
        let real = expand(r#"kubernetes = ["1.35"], real = true"#, "async fn it() {}").expect("fine");
        assert!(real.contains("fnit_v1_35()") && real.contains("fnit_real()"), "{real}");
    }

    #[test]
    fn what_cannot_be_a_test_is_told_why() {
        for (function, told) in [
            ("fn it() {}", "write `async fn`"),
            ("async fn it<T>() {}", "no generic parameters"),
            ("async fn it(&self) {}", "not of a type"),
            ("async fn it(a: Cluster, b: u8) {}", "takes the cluster, or nothing"),
            ("#[tokio::test] async fn it() {}", "remove this one"),
            ("#[test] async fn it() {}", "remove this one"),
        ] {
            let why = expand("", function).expect_err(function).to_string();
            assert!(why.contains(told), "{function}: {why}");
        }
        assert!(expand("", "struct It;").is_err());
    }
}
