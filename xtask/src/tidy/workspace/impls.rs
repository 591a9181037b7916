//! The inherent `impl` blocks of a crate, by the type that they are of.

use syn::spanned::Spanned as _;
use syn::{Item, ItemImpl, Type};

use super::modules::{Crate, ItemId};

/// An `impl` block that is of no trait.
pub(crate) struct InherentImpl<'a> {
    /// The type, if it is one of this crate.
    pub(crate) of: ItemId,
    pub(crate) file: &'a str,
    pub(crate) line: usize,
    pub(crate) block: &'a ItemImpl,
}

/// All of a crate, in the order of the text.
pub(crate) fn inherent_impls<'a>(one: &Crate<'a>) -> Vec<InherentImpl<'a>> {
    let mut found = Vec::new();
    for (id, module) in one.modules.iter().enumerate() {
        for item in module.items {
            if let Item::Impl(block) = item
                && block.trait_.is_none()
                && let Some(of) = self_type(one, id, block)
            {
                found.push(InherentImpl { of, file: module.file, line: block.impl_token.span().start().line, block });
            }
        }
    }
    found
}

/// The type that a block is of, without its parameters: of `impl<S> Shared<S>` it is `Shared`.
pub(crate) fn self_type(one: &Crate<'_>, module: usize, block: &ItemImpl) -> Option<ItemId> {
    let Type::Path(path) = block.self_ty.as_ref() else { return None };
    let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    one.item(module, &names)
}
