//! What a command has at hand: the gateway's endpoints, the output, the interrupt.

use crate::args::Options;
use crate::client::{Export, Http, Import, Result, Settled, Socket, Tell};
use crate::interrupt::Interrupt;
use crate::output::Output;

/// One run of one command.
pub struct Session {
    /// Where to write.
    pub out: Output,
    /// What the user asked for.
    pub options: Options,
    interrupt: Interrupt,
}

impl Session {
    /// A session; nothing is connected yet.
    pub fn new(options: Options, out: Output, interrupt: Interrupt) -> Self {
        Self {
            out,
            options,
            interrupt,
        }
    }

    /// Watches Ctrl-C anew: one that came before ends nothing any more. Sockets that are open watch by
    /// [`Socket::watching`].
    pub fn renew_interrupt(&mut self) {
        self.interrupt = Interrupt::on_ctrl_c();
    }

    /// Reports Ctrl-C.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// The REST endpoints.
    ///
    /// # Errors
    /// As [`Http::new`].
    pub fn http(&self) -> Result<Http> {
        Http::new(&self.options, self.interrupt.clone())
    }

    /// A new authenticated socket.
    ///
    /// # Errors
    /// As [`Socket::connect`].
    pub async fn socket(&self) -> Result<Socket> {
        Socket::connect(&self.options, self.interrupt.clone()).await
    }

    /// A new import into a flow, which reports what the stores make of it.
    ///
    /// # Errors
    /// As [`Import::open`].
    pub async fn import(&self, flow: &str, kind: &str) -> Result<Import> {
        let interrupt = self.interrupt.clone();
        Import::open(&self.options, interrupt, flow, kind, Tell::Stored).await
    }

    /// Says what stores refused, or did not confirm, of an import; `items` is what things are called.
    pub fn tell_settled(&mut self, settled: Option<&Settled>, items: &str) {
        for line in settled.map(|said| said.lines(items)).unwrap_or_default() {
            self.out.talk(format!("  {line}"));
        }
    }

    /// What passes through an interface of a flow from now on.
    ///
    /// # Errors
    /// As [`Export::open`].
    pub async fn export(&self, flow: &str, kind: &str, collection: Option<&str>) -> Result<Export> {
        Export::open(
            &self.options,
            self.interrupt.clone(),
            flow,
            kind,
            collection,
            false,
        )
        .await
    }

    /// What is stored of an interface of a flow, to its end.
    ///
    /// # Errors
    /// As [`Export::open`].
    pub async fn stored(&self, flow: &str, kind: &str, collection: &str) -> Result<Export> {
        let (options, interrupt) = (&self.options, self.interrupt.clone());
        Export::open(options, interrupt, flow, kind, Some(collection), true).await
    }

    /// What work comes to, unless the user interrupts it.
    ///
    /// # Errors
    /// `Error::Interrupted`; the work is dropped where it stands.
    pub async fn until_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            done = work => Ok(done),
            () = self.interrupt.wait() => Err(crate::client::Error::Interrupted),
        }
    }

    /// Waits; ends early, as an error, when the user interrupts.
    ///
    /// # Errors
    /// `Error::Interrupted`.
    pub async fn pause(&self, time: std::time::Duration) -> Result<()> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.interrupt.wait() => Err(crate::client::Error::Interrupted),
        }
    }
}
