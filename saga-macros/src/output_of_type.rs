//! `Output<u32>`: a type where the name of a step belongs, as far as that can be told from its name.

use syn::{GenericArgument, PathArguments, Type, TypePath};

const SIMPLE_TYPES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize", "String",
];
const GENERIC_TYPES: &[&str] = &["Box", "BTreeMap", "HashMap", "Option", "Result", "Vec"];

/// The type in an `Output<..>`, an `Outputs<..>`, or an `Option` of one of them, where it can be no step: one of the language,
/// or a common one of the standard library.
pub(crate) fn type_as_step(ty: &Type) -> Option<Type> {
    type_as_step_mut(&mut ty.clone()).cloned()
}

/// The same, to be replaced.
pub(crate) fn type_as_step_mut(ty: &mut Type) -> Option<&mut Type> {
    match ty {
        Type::Paren(inner) => type_as_step_mut(&mut inner.elem),
        Type::Group(inner) => type_as_step_mut(&mut inner.elem),
        Type::Path(TypePath { qself: None, path, .. }) => {
            let last = path.segments.last_mut()?;
            let is_optional = last.ident == "Option";
            if !is_optional && last.ident != "Output" && last.ident != "Outputs" {
                return None;
            }
            let PathArguments::AngleBracketed(arguments) = &mut last.arguments else { return None };
            let Some(GenericArgument::Type(inner)) = arguments.args.first_mut() else { return None };
            if is_optional { type_as_step_mut(inner) } else { Some(inner).filter(|inner| is_no_step(inner)) }
        }
        _ => None,
    }
}

fn is_no_step(ty: &Type) -> bool {
    match ty {
        Type::Array(_) | Type::Tuple(_) => true,
        Type::Path(TypePath { qself: None, path, .. }) if path.segments.len() == 1 => {
            path.segments.iter().any(|name| {
                let known = if name.arguments.is_empty() { SIMPLE_TYPES } else { GENERIC_TYPES };
                known.iter().any(|known| name.ident == known)
            })
        }
        _ => false,
    }
}
