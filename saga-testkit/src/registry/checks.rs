//! How a check is named.

/// One line a check: its clauses, where it stands, and what it needs.
macro_rules! checks {
    ($($clauses:expr => $module:ident :: $name:ident :: <$harness:ident> $(needs $($need:ident)and+)?,)*) => {
        vec![$($crate::check::Check {
            clauses: &$clauses,
            name: stringify!($name),
            needs: &[$($($crate::check::Need::$need),+)?],
            run: |bench| {
                Box::pin(async move { $module::$name::<$harness>(bench).await.map($crate::check::Verdict::from) })
            },
        }),*]
    };
}

pub(super) use checks;
