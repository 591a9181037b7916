//! Rules about files, folders, modules and crates, and about what may use what.

pub(super) mod dependencies;
pub(super) mod folder_size;
pub(super) mod impl_home;
pub(super) mod import_circle;
pub(super) mod imports;
pub(super) mod machine_calls;
pub(super) mod manifests;
pub(super) mod method_count;
pub(super) mod module_root;
pub(super) mod never_compiled;
pub(super) mod purity;
pub(super) mod size;
pub(super) mod upward_import;
pub(super) mod wide_literal;
