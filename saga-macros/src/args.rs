//! The options in the parentheses of the attributes.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{
    Expr, LitBool, LitInt, LitStr, Path, Token,
    ext::IdentExt,
    parenthesized,
    parse::{ParseStream, Parser},
    token,
};

use crate::{duration, errors::Errors, function::Kind, krate::Krate, rule::Rule};

/// What follows when the attempts are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    Stuck,
    Compensate,
}

/// What was asked for. An option that was wrong is as if it had not been written, so that the uses of
/// the function still compile.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) krate: Krate,
    pub(crate) name: Option<LitStr>,
    pub(crate) compensate: Option<Path>,
    pub(crate) no_compensation: Option<Ident>,
    pub(crate) resolve: Option<Path>,
    pub(crate) attempts: Option<u32>,
    pub(crate) base: Option<(Duration, Span)>,
    pub(crate) cap: Option<(Duration, Span)>,
    pub(crate) timeout: Option<(Duration, Span)>,
    pub(crate) give_up_after: Option<(Duration, Span)>,
    pub(crate) on_exhausted: Option<(Exhausted, Ident)>,
    pub(crate) group: Option<LitBool>,
    pub(crate) exclusive: Option<Ident>,
    pub(crate) lock: Option<Expr>,
    pub(crate) max_concurrent: Option<usize>,
    pub(crate) service: Option<LitStr>,
    pub(crate) compensated: Option<Ident>,
    pub(crate) implements: Option<Path>,
    /// The options as they were written.
    pub(crate) written: Vec<Ident>,
}

const OF_STEP: &[&str] = &[
    "compensate",
    "no_compensation",
    "resolve",
    "retry",
    "timeout",
    "give_up_after",
    "on_exhausted",
    "group",
    "exclusive",
    "lock",
    "max_concurrent",
    "name",
    "service",
    "compensated",
    "implements",
    "crate",
];
const OF_COMPENSATION: &[&str] =
    &["retry", "timeout", "give_up_after", "group", "exclusive", "max_concurrent", "crate"];
const OF_RESOLUTION: &[&str] = &["retry", "timeout", "crate"];
const OF_RETRY: &[&str] = &["attempts", "base", "cap"];

impl Options {
    /// Reads the options; every mistake is reported, and the rest is read all the same.
    pub(crate) fn read(kind: Kind, tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let (known, owner) = match kind {
            Kind::Step => (OF_STEP, "a step"),
            Kind::Compensation => (OF_COMPENSATION, "a compensation"),
            Kind::Resolution => (OF_RESOLUTION, "a resolution"),
        };
        let list = List { known, owner };
        read(tokens, |input| {
            list.read(input, errors, |option, input, errors| options.option(option, input, errors));
        });
        options
    }

    fn option(&mut self, option: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        self.written.push(option.clone());
        match option.to_string().as_str() {
            "compensate" => {
                self.compensate = Some(value(option, "a function: `compensate = release_stock`", input)?);
            }
            "exclusive" => self.exclusive = Some(option.clone()),
            "lock" => {
                let form = "a closure that names what the step locks: `lock = |input| Entity::new(\"account\", &input.account)`";
                self.lock = Some(value(option, form, input)?);
            }
            "max_concurrent" => self.max_concurrent = calls_value(option, input, errors)?,
            "no_compensation" => self.no_compensation = Some(option.clone()),
            "resolve" => self.resolve = Some(value(option, "a function: `resolve = find_charge`", input)?),
            "timeout" => self.timeout = duration_value(option, "\"10s\"", input, errors)?,
            "give_up_after" => self.give_up_after = duration_value(option, "\"10m\"", input, errors)?,
            "on_exhausted" => self.on_exhausted = exhausted_value(option, input, errors)?,
            "group" => self.group = Some(value(option, "`group = false`", input)?),
            "name" => self.name = Some(value(option, "text: `name = \"charge-card\"`", input)?),
            "service" => self.service = Some(value(option, "text: `service = \"payments\"`", input)?),
            "compensated" => self.compensated = Some(option.clone()),
            "implements" => {
                self.implements = Some(value(option, "a contract: `implements = contracts::charge_card`", input)?);
            }
            "crate" => {
                self.krate.given = Some(value(option, "a path: `crate = my_crate::saga_core`", input)?);
            }
            _ => self.retry(option, input, errors)?,
        }
        Ok(())
    }

    fn retry(&mut self, option: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if !input.peek(token::Paren) {
            let message =
                "write `retry(attempts = 8, base = \"100ms\", cap = \"30s\")`; each of the three may be left out";
            return Err(syn::Error::new(option.span(), message));
        }
        let inner;
        parenthesized!(inner in input);
        let list = List { known: OF_RETRY, owner: "`retry`" };
        list.read(&inner, errors, |setting, input, errors| {
            match setting.to_string().as_str() {
                "attempts" => self.attempts = attempts_value(setting, input, errors)?,
                "base" => self.base = duration_value(setting, "\"100ms\"", input, errors)?,
                _ => self.cap = duration_value(setting, "\"30s\"", input, errors)?,
            }
            Ok(())
        });
        Ok(())
    }
}

/// A list of options, separated by commas.
struct List {
    known: &'static [&'static str],
    owner: &'static str,
}

impl List {
    fn read(
        &self,
        input: ParseStream<'_>,
        errors: &mut Errors,
        mut option: impl FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
    ) {
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            match input.call(Ident::parse_any) {
                Err(error) => {
                    errors.at_span(Rule::OptionForm, error.span(), format!("expected an option\n{}", self.remedy()));
                }
                Ok(name) if !self.known.contains(&name.to_string().as_str()) => {
                    let message = format!("{} has no option `{name}`\n{}", self.owner, self.remedy());
                    errors.at(Rule::UnknownOption, &name, message);
                    skip(input);
                }
                Ok(name) if seen.contains(&name) => {
                    errors.at(
                        Rule::DuplicateOption,
                        &name,
                        format!("`{name}` is given twice\nhelp: keep one of the two"),
                    );
                    skip(input);
                }
                Ok(name) => {
                    if let Err(error) = option(&name, input, errors) {
                        errors.parse(Rule::OptionForm, error);
                    } else if !input.is_empty() && !input.peek(Token![,]) {
                        errors.at_span(
                            Rule::OptionForm,
                            input.span(),
                            format!("expected `,` after the option `{name}`"),
                        );
                    }
                    seen.push(name);
                }
            }
            skip(input);
            let _comma: syn::Result<Token![,]> = input.parse();
        }
    }

    fn remedy(&self) -> String {
        format!("help: the options of {} are `{}`", self.owner, self.known.join("`, `"))
    }
}

/// Runs a reader that consumes all tokens.
fn read(tokens: TokenStream, reader: impl FnOnce(ParseStream<'_>)) {
    let parser = |input: ParseStream<'_>| {
        reader(input);
        Ok(())
    };
    // The reader itself never fails, and what it leaves unread it has reported.
    let _read = parser.parse2(tokens);
}

/// Passes over what is left of an option.
fn skip(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        let _skipped: syn::Result<TokenTree> = input.parse();
    }
}

/// Reads `= value`.
fn value<T: syn::parse::Parse>(option: &Ident, form: &str, input: ParseStream<'_>) -> syn::Result<T> {
    let message = format!("`{option}` takes {form}");
    if !input.peek(Token![=]) {
        return Err(syn::Error::new(option.span(), message));
    }
    let _equals: Token![=] = input.parse()?;
    if input.is_empty() {
        return Err(syn::Error::new(option.span(), message));
    }
    input.parse().map_err(|error| syn::Error::new(error.span(), message))
}

fn duration_value(
    option: &Ident,
    example: &str,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Option<(Duration, Span)>> {
    let text: LitStr = value(option, &format!("a duration as text: `{option} = {example}`"), input)?;
    let duration = duration::parse(&text.value());
    if duration.is_none() {
        let message = format!(
            "`{}` is no duration\nhelp: write a whole number with `ms`, `s`, `m` or `h`: `{option} = {example}`",
            text.value()
        );
        errors.at(Rule::Duration, &text, message);
    }
    Ok(duration.map(|duration| (duration, text.span())))
}

fn exhausted_value(
    option: &Ident,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Option<(Exhausted, Ident)>> {
    let text: LitStr = value(option, "`\"stuck\"` or `\"compensate\"`", input)?;
    let exhausted = match text.value().as_str() {
        "stuck" => Exhausted::Stuck,
        "compensate" => Exhausted::Compensate,
        other => {
            let message = format!(
                "`on_exhausted` cannot be `{other}`\n\
                 help: write `\"stuck\"`: an operator decides; or `\"compensate\"`: the saga is undone"
            );
            errors.at(Rule::OnExhausted, &text, message);
            return Ok(None);
        }
    };
    Ok(Some((exhausted, option.clone())))
}

fn calls_value(option: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Option<usize>> {
    let number: LitInt = value(option, "a number: `max_concurrent = 8`", input)?;
    let calls = number.base10_parse::<u32>().ok().filter(|calls| *calls > 0);
    if calls.is_none() {
        let message = format!(
            "`max_concurrent` says how many calls one process makes at a time, so it is a number from 1 to {}",
            u32::MAX
        );
        errors.at(Rule::MaxConcurrent, &number, message);
    }
    Ok(calls.and_then(|calls| usize::try_from(calls).ok()))
}

fn attempts_value(option: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Option<u32>> {
    let number: LitInt = value(option, "a number: `attempts = 8`", input)?;
    let attempts = number.base10_parse::<u32>().ok().filter(|attempts| *attempts > 0);
    if attempts.is_none() {
        let message = format!("`attempts` counts the first call too, so it is a number from 1 to {}", u32::MAX);
        errors.at(Rule::Attempts, &number, message);
    }
    Ok(attempts)
}
