//! How a check is named.

/// One line a check: its clauses, where it stands, and what it needs.
macro_rules! checks {
    ($($clauses:expr => $module:ident :: $name:ident :: <$harness:ident> $(needs $need:ident)?,)*) => {
        vec![$($crate::check::Check {
            clauses: &$clauses,
            name: stringify!($name),
            need: checks!(@need $($need)?),
            run: |bench| Box::pin($module::$name::<$harness>(bench)),
        }),*]
    };
    (@need) => { $crate::check::Need::Nothing };
    (@need $need:ident) => { $crate::check::Need::$need };
}

pub(super) use checks;
