//! Ctrl-C as something that any waiting place can watch. It never ends the process itself.

use tokio::sync::watch;

/// A handle that knows whether the user pressed Ctrl-C.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// An interrupt that never comes.
    pub fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// A handle and the switch that fires it.
    pub fn manual() -> (watch::Sender<bool>, Self) {
        let (switch, watch) = watch::channel(false);
        (switch, Self(watch))
    }

    /// Watches Ctrl-C from now on.
    pub fn on_ctrl_c() -> Self {
        let (switch, interrupt) = Self::manual();
        tokio::spawn(async move {
            // The switch lives as long as somebody watches.
            tokio::select! {
                Ok(()) = tokio::signal::ctrl_c() => {
                    switch.send_replace(true);
                    switch.closed().await;
                }
                () = switch.closed() => {}
            }
        });
        interrupt
    }

    /// Returns when the user interrupts; never otherwise.
    pub async fn wait(&self) {
        let mut watch = self.0.clone();
        if watch.wait_for(|fired| *fired).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
