//! Expansions, read back and printed.

use proc_macro2::{Group, TokenStream, TokenTree};
use std::str::FromStr;

pub(crate) fn tokens(text: &str) -> TokenStream {
    TokenStream::from_str(text).expect("tokens")
}

pub(crate) fn count(tokens: TokenStream) -> usize {
    let count = |tree| match tree {
        TokenTree::Group(group) => 2 + count(group.stream()),
        _ => 1,
    };
    tokens.into_iter().map(count).sum()
}

pub(crate) fn expand(attribute: &str, item: &str) -> String {
    let expansion = opened(crate::callable(tokens(attribute), tokens(item)));
    prettyplease::unparse(&syn::parse2(expansion).expect("items"))
}

/// With what is given to `needs_cuda!` in its place, for the printer leaves a macro's tokens as they
/// are.
fn opened(tokens: TokenStream) -> TokenStream {
    let trees: Vec<_> = tokens.into_iter().collect();
    let (mut opened_trees, mut rest) = (TokenStream::new(), &trees[..]);
    while let [first, more @ ..] = rest {
        rest = more;
        match (first, more) {
            (TokenTree::Ident(name), [TokenTree::Punct(_), TokenTree::Group(args), after @ ..])
                if name == "needs_cuda" =>
            {
                let Some(TokenTree::Group(definition)) = args.stream().into_iter().next() else {
                    panic!("a definition");
                };
                opened_trees.extend(opened(definition.stream()));
                rest = after;
            }
            (TokenTree::Group(group), _) => {
                let inner = opened(group.stream());
                opened_trees.extend([TokenTree::from(Group::new(group.delimiter(), inner))]);
            }
            _ => opened_trees.extend([first.clone()]),
        }
    }
    opened_trees
}

/// Without line breaks and the commas before them, which are the printer's.
fn flat(text: &str) -> String {
    let text: String = text.split_whitespace().collect();
    let text = text
        .replace(",)", ")")
        .replace(",]", "]")
        .replace(",}", "}")
        .replace(",>", ">");
    text.replace("::jax_callable::__private", "P")
        .replace("a::runtime::__private", "P")
}

/// Whether the expansion contains texts, with `P` for the runtime's private module.
#[track_caller]
fn says(expansion: &str, wanted: &[&str]) {
    for wanted in wanted {
        let found = flat(expansion).contains(&flat(wanted));
        assert!(found, "`{wanted}` is not in\n{expansion}");
    }
}

const SAXPY: &str = "
    /// y <- a x + y.
    ///
    ///  Indented.
    #[inline]
    pub(crate) fn saxpy(
        a: f32,
        #[dims(n)] x: cpu::Array<f32, 1>,
        #[dims(n)] #[allow(unused)] mut y: cpu::ArrayMut<f32, 1>,
    ) -> Result<()> { body() }";

#[test]
fn the_description() {
    let expansion = expand("in_out = \"y\"", SAXPY);
    says(
        &expansion,
        &[
            "#[inline] pub(crate) fn saxpy( a: f32, x: cpu::Array<f32, 1>, #[allow(unused)] mut y: cpu::ArrayMut<f32, 1>, ) -> Result<()> { body() }",
            "pub(crate) mod saxpy { pub enum Def {} }",
            "impl P::Definition for saxpy::Def",
            r#"name: "saxpy","#,
            // Line, name, document, names of dimensions, and of the last parameter, an in-out.
            r#"(::core::line!(), ":5:saxpy25:y <- a x + y.\n\n Indented.1:1:n"#,
            r#"1:y1:1:1:4:Name0:", ::core::module_path!(), "\0", ::core::file!())"#,
            "&[ <f32 as P::FfiArg<'_>>::TYPE, <cpu::Array<f32, 1> as P::FfiArg<'_>>::TYPE,",
            r#"P::Param::new("y", Self::TYPES[2usize]).in_out()
               .dims(&[P::Dim::Name(0usize)])"#,
            // No other key was given.
            r#"dim_names: &["n"], ..P::Callable::DEFAULT"#,
            "<Result<()> as P::IntoResult>::into_result(",
            "P::Declaration::new::<saxpy::Def>(",
        ],
    );
    // Types that say what they are leave nothing to ask.
    assert!(!expansion.contains("require"), "{expansion}");
}

#[test]
fn an_empty_list_stages_nothing() {
    let expansion = expand(
        "graph_mode = WarpStaged, stage_in = ()",
        "fn f(x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {}",
    );
    says(
        &expansion,
        &["stage_in: ::core::option::Option::Some(&[]),"],
    );
    assert!(!expansion.contains("stage_out"), "{expansion}");
}

#[test]
fn the_keys() {
    let expansion = expand(
        r#"name = "other", graph_mode = WarpStaged, vmap_method = None, batch_dims = n,
           stage_in = (x, y), stage_out("type"), graph_cache_max = 7, has_side_effect,
           modules = [kernels, crate::more::kernels], preload = AllDevices, crate = a::runtime,
           state = Plan::new(k, 4), vjp = grad::back"#,
        "fn f(
            k: i32,
            #[dims(n, m)] x: cuda::Array<f32, 2>,
            #[dims(n)] y: cuda::Array<f32, 1>,
            plan: &State<Plan>,
            #[dims(n, (x.dim(1) + 1).div_ceil(2) % k)] r#type: cuda::ArrayMut<f32, 2>,
        ) {}",
    );
    says(
        &expansion,
        &[
            r#"name: "other","#,
            r#"P::Param::new("type","#,
            "vmap_method: ::core::option::Option::None, batch_dims: &[\"n\"], has_side_effect: true,",
            "graph_mode: P::GraphMode::WarpStaged,",
            r#"stage_in: ::core::option::Option::Some(&["x", "y"]),"#,
            r#"stage_out: ::core::option::Option::Some(&["type"]),"#,
            "GraphCacheMax::Limit(7u64),",
            r#"modules: ::core::option::Option::Some(&[
                P::ModuleUse { path: "kernels", id: kernels::ID },
                P::ModuleUse { path: "crate::more::kernels", id: crate::more::kernels::ID }
            ]),"#,
            r#"preload: "AllDevices","#,
            r#"state: ::core::option::Option::Some("Plan::new(k, 4)")"#,
            "let k = <i32 as P::FfiArg<'_>>::take(call,",
            "__jax_callable::IntoState::<<&State<Plan> as P::FfiArg<'_>>::StateOr<P::NoState>>::build(Plan::new(k, 4))",
            "vjp: ::core::option::Option::Some(<grad::back::Def as P::Definition>::callable)",
            "use P::require_vjp as __require;
            __require(
                <f::Def as P::Definition>::CALLABLE,
                <grad::back::Def as P::Definition>::CALLABLE,
                \"`grad::back` does not fit as the `vjp` of `other` [JC0080]\",",
            "P::Dim::Op(
                P::DimOp::Rem,
                &P::Dim::Op(
                    P::DimOp::DivCeil,
                    &P::Dim::Op(
                        P::DimOp::Add,
                        &P::Dim::Axis(1usize, 1usize),
                        &P::Dim::Const(1i64),
                    ),
                    &P::Dim::Const(2i64),
                ),
                &P::Dim::Scalar(0usize),
            )",
        ],
    );
    assert!(!expansion.contains("::jax_callable"), "{expansion}");
}

#[test]
fn output_dims_go_to_outputs() {
    let outputs =
        "fn f(x: cpu::ArrayMut<f32, 1>, y: cpu::ArrayMut<f32, 1>, z: cpu::ArrayMut<f32, 1>) {}";
    let dims = |attribute: &str| {
        let expansion = expand(attribute, outputs);
        expansion.matches("Dim::Const(4i64)").count()
    };
    assert_eq!(dims("in_out = x, output_dims = 4"), 2);
    assert_eq!(dims("in_out = x, output_dims(z = 4)"), 1);
}

#[test]
fn aliases_are_asked() {
    let expansion = expand("in_out = y, num_outputs = 1", "fn f(x: In, y: Out) {}");
    says(
        &expansion,
        &[
            "__require( P::check::results(",
            "check::is_result(",
            "check::is_in_order(",
            "check::is_context_first(",
            "check::is_same_platform(",
            "check::rank_at_most(",
            "check::is_built_once(",
        ],
    );
}

#[test]
fn lifetimes_of_the_function_are_not_quoted() {
    let expansion = expand(
        "",
        "fn f<'a, 'b>(x: cpu::Array<'a, f32, 1>, n: &'b str, y: cpu::ArrayMut<'a, f32, 1>) {}",
    );
    says(
        &expansion,
        &["fn f<'a, 'b>(", "<cpu::Array<'_, f32, 1> as", "<&'_ str as"],
    );
}

#[test]
fn the_function_is_there_whatever_is_wrong() {
    for attribute in ["nonsense", "= =", "in_out = missing", "\"text\""] {
        let expansion = expand(
            attribute,
            "fn f(#[dims(n)] x: cpu::Array<f32, 1>) { body() }",
        );
        says(
            &expansion,
            &["fn f(x: cpu::Array<f32, 1>) { body() }", "compile_error!"],
        );
        assert!(!expansion.contains("submit"), "{expansion}");
    }
    let expansion = expand("", "struct Other;");
    says(&expansion, &["struct Other;", "compile_error!"]);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let expansion = expand(
        "in_out = missing, num_outputs = 0, graph_mode = Wrap, unknown, name = \"a b\"",
        "unsafe fn f<T>(lambda: f32, #[dims(n, m)] x: cpu::Array<f32, 1>, _: f32) -> f32 {}",
    );
    for code in [
        "JC0040", "JC0007", "JC0004", "JC0001", "JC0006", "JC0014", "JC0011", "JC0020", "JC0051",
        "JC0017", "JC0018",
    ] {
        assert_eq!(expansion.matches(code).count(), 1, "{code} in\n{expansion}");
    }
}

#[test]
fn half_written_bodies_are_kept() {
    for body in [
        "x.",
        "x.foo(",
        "let y = ",
        "if x {",
        "match x { 1 =>",
        "let = ;",
        "@ # $",
        "x..y.",
        "'a",
    ] {
        // Editors close what is open.
        let open = |(close, open)| body.matches(open).count() - body.matches::<char>(close).count();
        let closed = [(')', '('), ('}', '{')].map(|pair| (pair.0, open(pair)));
        let mut body = body.to_owned();
        for (close, times) in closed {
            body.extend(std::iter::repeat_n(close, times));
        }
        let item = format!(
            "fn f(x: cpu::Array<f32, 1>, #[dims(4)] y: cpu::ArrayMut<f32, 1>) {{ {body} }}"
        );
        for attribute in [
            "",
            "in_out",
            "in_out =",
            "in_out = y, in_o",
            "output_dims(y",
        ] {
            let Ok(attribute) = TokenStream::from_str(attribute) else {
                continue;
            };
            let expansion = flat(&crate::callable(attribute.clone(), tokens(&item)).to_string());
            let kept = flat(&item.replace("#[dims(4)] ", ""));
            assert!(
                expansion.starts_with(&kept),
                "{kept} is not in\n{expansion}"
            );
            // What refers to the function's module finds one.
            assert!(expansion.contains("modf{"), "{attribute}\n{expansion}");
        }
    }
}

#[test]
fn half_written_functions_are_kept() {
    for (item, kept) in [
        // The compiler would say that there is no body; so it gets one.
        (
            "fn f(x: A, #[dims(3)] y: B);",
            "fn f(#[allow(unused_variables)] x: A, #[allow(unused_variables)] y: B) { ::core::todo!() }",
        ),
        (
            "fn f(x: A, #[dims(3)] y: B)",
            "fn f(#[allow(unused_variables)] x: A, #[allow(unused_variables)] y: B) { ::core::todo!() }",
        ),
        (
            "pub fn f(x: cpu::, #[dims(3)] y: B) { x. }",
            "pub fn f(x: cpu::, y: B) { x. }",
        ),
        ("fn f(x, #[dims(3)] y: B) {}", "fn f(x, y: B) {}"),
        ("fn (x: A) { #[dims] x }", "fn (x: A) { x }"),
    ] {
        let expansion = flat(&crate::callable(TokenStream::new(), tokens(item)).to_string());
        assert!(
            expansion.starts_with(&flat(kept)),
            "{kept} is not in\n{expansion}"
        );
        assert_eq!(expansion.matches("JC0010").count(), 1, "{expansion}");
    }
}

#[test]
fn what_only_the_attribute_uses_is_not_unused() {
    let expansion = expand(
        "state = Plan::new(a)",
        "fn f(a: i32, mut k: i32, n: i32, r#type: i32, x: cpu::Array<f32, 1>, plan: &State<Plan>,
            #[dims(k, x.dim(0), r#type)] #[deny(unused)] y: cpu::ArrayMut<f32, 3>) {}",
    );
    says(
        &expansion,
        &[
            "fn f(#[allow(unused_variables)] a: i32, #[allow(unused_variables)] mut k: i32, n: i32,
            #[allow(unused_variables)] r#type: i32,
            #[allow(unused_variables)] x: cpu::Array<f32, 1>, plan: &State<Plan>,
            #[deny(unused)] y: cpu::ArrayMut<f32, 3>)",
        ],
    );
}

#[test]
fn modules_do_not_hide_primitive_types() {
    let expansion = expand(
        "vjp = other::str",
        "pub fn f32(x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {}",
    );
    says(
        &expansion,
        &[
            "pub mod __f32 { pub enum Def {} }",
            "for __f32::Def",
            "<other::__str::Def as",
        ],
    );
    assert!(
        !expansion.contains("f32::Def>::") && !expansion.contains("mod f32"),
        "{expansion}"
    );
}

#[test]
fn the_runtime_is_asked_for_its_version() {
    let expansion = expand("crate = a::runtime", SAXPY);
    let version = env!("CARGO_PKG_VERSION");
    says(
        &expansion,
        &[&format!("a::runtime::macros_version! {{ \"{version}\" }}")],
    );
}
