//! The rules and their cases belong together: each rule has a case, and each case breaks the rules that it names.

use std::{collections::BTreeSet, fs, path::Path};

use quote::ToTokens;
use syn::{ImplItem, Item};

use crate::{checks, errors::Errors, function::Kind, generate, rule::Rule};

/// A file under `tests-build/tests/ui/<topic>/fail`.
struct Case {
    path: String,
    /// The ids in its first line.
    named: Vec<String>,
    source: syn::File,
}

#[test]
fn each_rule_has_a_case() {
    let named: BTreeSet<String> = cases().into_iter().flat_map(|case| case.named).collect();
    let rules: BTreeSet<String> =
        Rule::ALL.iter().map(|(_, id)| *id).chain(checks::IDS.iter().copied()).map(String::from).collect();
    let without: Vec<_> = rules.difference(&named).collect();
    assert!(without.is_empty(), "rules without a case: {without:?}");
    let unknown: Vec<_> = named.difference(&rules).collect();
    assert!(unknown.is_empty(), "cases that name no rule: {unknown:?}");
}

#[test]
fn each_case_breaks_the_rules_that_it_names_and_no_other() {
    for case in cases() {
        let named: BTreeSet<&str> =
            case.named.iter().map(String::as_str).filter(|id| !checks::IDS.contains(id)).collect();
        let broken = broken_rules(&case.source);
        let broken: BTreeSet<&str> = broken.iter().map(|rule| id_of(*rule)).collect();
        assert_eq!(broken, named, "{}", case.path);
    }
}

#[test]
fn a_correct_function_breaks_no_rule() {
    let cases = files("pass");
    assert!(!cases.is_empty());
    for path in cases {
        let source = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(broken_rules(&source), [], "{}", path.display());
    }
}

fn id_of(rule: Rule) -> &'static str {
    let found = Rule::ALL.iter().find(|(other, _)| *other == rule);
    found.map(|(_, id)| *id).expect("the list is made from the rules")
}

fn cases() -> Vec<Case> {
    files("fail").iter().map(|path| Case::read(path)).collect()
}

fn files(outcome: &str) -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests-build/tests/ui");
    let topics = fs::read_dir(folder).unwrap().map(|topic| topic.unwrap().path().join(outcome));
    let files = topics.filter(|cases| cases.exists()).flat_map(|cases| fs::read_dir(cases).unwrap());
    files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

impl Case {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let first = text.lines().next().and_then(|line| line.strip_prefix("// rule: "));
        let named = first.unwrap_or_else(|| panic!("{}: the first line names no rule", path.display()));
        Self {
            path: path.display().to_string(),
            named: named.split(", ").map(String::from).collect(),
            source: syn::parse_file(&text).unwrap(),
        }
    }
}

/// What the attributes in a file report.
fn broken_rules(source: &syn::File) -> Vec<Rule> {
    source.items.iter().flat_map(of_item).collect()
}

fn of_item(item: &Item) -> Vec<Rule> {
    match item {
        Item::Fn(function) => of_attributes(&function.attrs, function),
        Item::Struct(structure) => of_attributes(&structure.attrs, structure),
        Item::Mod(module) => module.content.iter().flat_map(|(_, items)| items).flat_map(of_item).collect(),
        Item::Impl(block) => block.items.iter().flat_map(of_method).collect(),
        // A declaration without a body is no item of the grammar.
        Item::Verbatim(tokens) => {
            syn::parse2(tokens.clone()).map_or_else(|_| Vec::new(), |declared: Declared| declared.rules())
        }
        _ => Vec::new(),
    }
}

fn of_method(item: &ImplItem) -> Vec<Rule> {
    match item {
        ImplItem::Fn(method) => of_attributes(&method.attrs, method),
        _ => Vec::new(),
    }
}

/// An item that is read as far as its attributes.
struct Declared {
    attributes: Vec<syn::Attribute>,
    rest: proc_macro2::TokenStream,
}

impl syn::parse::Parse for Declared {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self { attributes: input.call(syn::Attribute::parse_outer)?, rest: input.parse()? })
    }
}

impl Declared {
    fn rules(&self) -> Vec<Rule> {
        self.attributes.iter().flat_map(|attribute| of_attribute(attribute, &self.rest)).collect()
    }
}

fn of_attributes(attributes: &[syn::Attribute], item: &impl ToTokens) -> Vec<Rule> {
    let declared: Declared = syn::parse2(item.to_token_stream()).unwrap();
    attributes.iter().flat_map(|attribute| of_attribute(attribute, &declared.rest)).collect()
}

fn of_attribute(attribute: &syn::Attribute, item: &proc_macro2::TokenStream) -> Vec<Rule> {
    let kind = match attribute.path().segments.last().unwrap().ident.to_string().as_str() {
        "saga_step" => Kind::Step,
        "saga_compensation" => Kind::Compensation,
        "saga_resolution" => Kind::Resolution,
        _ => return Vec::new(),
    };
    let options = match &attribute.meta {
        syn::Meta::List(list) => list.tokens.clone(),
        _ => proc_macro2::TokenStream::new(),
    };
    let mut errors = Errors::new();
    let _generated = generate(kind, options, item, &mut errors);
    errors.into_rules()
}
