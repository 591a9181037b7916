//! The rules of the attributes, each with an id that a failing case under `tests-build/tests/ui` names.

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $id:literal,)*) => {
        /// What the attributes refuse.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Rule {
            $($(#[$doc])* $rule,)*
        }

        #[cfg(test)]
        impl Rule {
            /// Every rule with its id.
            pub(crate) const ALL: &[(Self, &str)] = &[$((Self::$rule, $id),)*];
        }
    };
}

rules! {
    /// The attribute stands on something else than a function.
    NotAFunction = "not-a-function",
    /// The function is only declared, and no service that hosts it is named.
    NoBody = "no-body",
    /// The function is not `async`.
    NotAsync = "not-async",
    /// The function is `const`, `unsafe` or `extern`.
    Qualifier = "qualifier",
    /// The function takes `self`.
    Receiver = "receiver",
    /// A lifetime is a parameter of the function, or is written at a reference.
    Lifetime = "lifetime",
    /// A constant is a parameter of the function.
    ConstParameter = "const-parameter",
    /// A parameter is there in some builds only.
    ParameterCfg = "parameter-cfg",
    /// A parameter is `impl Trait`.
    ImplTrait = "impl-trait",
    /// More than one `&mut` parameter.
    TwoConnections = "two-connections",
    /// `&Connection` instead of `&mut Connection`.
    ConnectionForm = "connection-form",
    /// `&mut Transaction<'_>` instead of the connection.
    TransactionObject = "transaction-object",
    /// `&mut dyn Trait` as the connection.
    DynConnection = "dyn-connection",
    /// More than one `&StepContext`.
    TwoContexts = "two-contexts",
    /// The context is taken by value or as `&mut`.
    ContextForm = "context-form",
    /// `&State<T>` or `&Output<step>`.
    ReadByReference = "read-by-reference",
    /// A reference to something that is not the context.
    InputByReference = "input-by-reference",
    /// A step has more than one input.
    TwoInputs = "two-inputs",
    /// A compensation has more than the input and the output.
    ThreeValues = "three-values",
    /// There is no input.
    NoInput = "no-input",
    /// `Output<u32>`: a type where the name of a step belongs.
    OutputOfType = "output-of-type",
    /// More `State` and `Output` parameters than the runtime reads.
    TooManyReads = "too-many-reads",
    /// What is returned is no `Result`.
    NotAResult = "not-a-result",
    /// A compensation returns a value.
    CompensationReturnsValue = "compensation-returns-value",
    /// An option that does not exist.
    UnknownOption = "unknown-option",
    /// An option twice.
    DuplicateOption = "duplicate-option",
    /// An option whose value has the wrong form.
    OptionForm = "option-form",
    /// `attempts` is no number from 1.
    Attempts = "attempts",
    /// Text that is no duration.
    Duration = "duration",
    /// A timeout of zero.
    ZeroTimeout = "zero-timeout",
    /// No time for all attempts together.
    ZeroGiveUp = "zero-give-up",
    /// `on_exhausted` is neither `stuck` nor `compensate`.
    OnExhausted = "on-exhausted",
    /// `on_exhausted` without a limit that can be reached.
    ExhaustedWithoutLimit = "exhausted-without-limit",
    /// `cap` is shorter than `base`.
    CapBelowBase = "cap-below-base",
    /// The name of the step has a form that step keys do not allow.
    NameForm = "name-form",
    /// The name of the step is `undo`.
    NameReserved = "name-reserved",
    /// `service` on a function with a body.
    ServiceAndBody = "service-and-body",
    /// The name of the service has a form that names do not have.
    ServiceForm = "service-form",
    /// `compensated` on a function with a body.
    CompensatedAndBody = "compensated-and-body",
    /// `compensated` together with `no_compensation`.
    CompensatedAndNone = "compensated-and-none",
    /// An option of a contract that only its host can decide on.
    ContractOption = "contract-option",
    /// A contract takes something else than its input.
    ContractParameter = "contract-parameter",
    /// A contract has a type parameter.
    ContractTypeParameter = "contract-type-parameter",
    /// `implements` together with `name`.
    ImplementsAndName = "implements-and-name",
    /// A step that implements a contract takes `Output<step>`.
    ImplementsWithOutput = "implements-with-output",
    /// A step takes a `Batch` and has no transaction.
    BatchWithoutTransaction = "batch-without-transaction",
    /// A step takes a `Batch` and `&StepContext`.
    BatchContext = "batch-context",
    /// A step takes a `Batch` and `Output<step>`.
    BatchOutput = "batch-output",
    /// A step takes a `Batch` and does not return `BatchResults`.
    BatchReturn = "batch-return",
    /// A step returns `BatchResults` and takes no `Batch`.
    AnswersWithoutBatch = "answers-without-batch",
    /// A compensation takes a `Batch`.
    BatchInCompensation = "batch-in-compensation",
    /// A contract takes a `Batch`.
    BatchInContract = "batch-in-contract",
    /// `group = false` on a step that takes a `Batch`.
    BatchUngrouped = "batch-ungrouped",
    /// `compensate` together with `no_compensation`.
    CompensateAndNone = "compensate-and-none",
    /// `resolve` on a step that runs in a transaction.
    ResolveOfTransaction = "resolve-of-transaction",
    /// A resolution returns something else than a `Resolved`.
    ResolutionReturn = "resolution-return",
    /// A resolution takes a connection.
    ResolutionInTransaction = "resolution-in-transaction",
    /// `exclusive` on a function that runs in a transaction.
    ExclusiveInTransaction = "exclusive-in-transaction",
    /// A step takes `Locked` and has no `lock`.
    LockedWithoutLock = "locked-without-lock",
    /// A step takes a `Batch` and `Locked`.
    BatchLocked = "batch-locked",
    /// `max_concurrent` is 0 or no number.
    MaxConcurrent = "max-concurrent",
    /// `group` on a function without a transaction.
    GroupWithoutTransaction = "group-without-transaction",
}
