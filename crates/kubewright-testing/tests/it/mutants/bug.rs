//! The bugs.

/// A bug that operators have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// What is made for an object does not refer to it, so it stays when the object goes.
    MissingOwner,
    /// It creates without looking, and takes it for an error that something is there.
    CreateUnchecked,
    /// It says that all is done before it does it.
    StatusFirst,
    /// It writes over what others have written since.
    LostUpdate,
    /// A cleanup fails that finds nothing to clean up: half of it was done before a crash.
    CleanupOnce,
    /// It writes past its cache and then believes the cache.
    StaleRead,
    /// It is not told when what it made is deleted.
    MissedDelete,
    /// Each look at an object changes the object, which is a reason to look.
    HotLoop,
    /// It tries again at once, for as long as it takes.
    RetryWithoutEnd,
    /// It takes over what somebody else has made under the name that it wants.
    AdoptsStrangers,
    /// It goes on after an error, and nobody comes back to it.
    SwallowedError,
    /// It guards an object after it has made what is to be cleaned up.
    LateFinalizer,
    /// It remembers what is to be cleaned up, until it is started anew.
    ForgetsOnRestart,
    /// It writes what is there already, each time that it looks.
    WritesTheSame,
    /// It writes what is wanted and never takes away what is not wanted any more.
    ForgetsKey,
    /// It makes what is wanted and never deletes what is not wanted any more.
    ForgetsChild,
    /// It says once which generation it has seen.
    StaleGeneration,
    /// It wants a list to have what it puts there and nothing else.
    FightsInjector,
}
