//! The engine over a store, compiled with the store's crate.

/// Compiles the engine over a store in this crate, where the build is not optimised.
///
/// The engine is generic over its store, so each program would compile it anew. In a build without optimisation, a program uses
/// the generic code that a library which it depends on has compiled already, so a program over this store builds faster after
/// each change. The crate of a store calls this once, outside of functions. In optimised builds the macro is empty, since there each
/// program compiles the generic code that it uses. It is empty in the unit tests of the crate itself too: no program depends on them.
///
/// ```
/// use saga_core::memory::MemoryStore;
///
/// saga_core::precompile_runtime!(MemoryStore);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! precompile_runtime {
    ($store:ty) => {
        #[cfg(all(debug_assertions, not(test)))]
        const _: () = {
            type Starting =
                dyn ::core::future::Future<Output = Result<$crate::Runtime<$store>, $crate::BuildError>> + Send;

            // This is never called. The compiler keeps a static that is marked as used, and the functions behind it.
            #[used]
            static START: fn($crate::engine::RuntimeBuilder<$store>) -> ::std::pin::Pin<::std::boxed::Box<Starting>> =
                |builder| ::std::boxed::Box::pin(builder.start());
        };
    };
}
