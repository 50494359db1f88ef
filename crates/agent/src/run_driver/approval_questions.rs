//! Completes the questions to a person about calls.

use super::{RunDriver, VIA};
use crate::events::ApprovalQuestion;
use std::time::SystemTime;
use uuid::Uuid;
use wharf_runtime::{Call, Raw};

impl RunDriver<'_> {
    /// Adds id, time limit, and the stored results that the calls pass on. Takes the driver exclusively, because the
    /// future has to be `Send` and the driver is not `Sync`.
    pub(super) async fn prepare_questions(&mut self, questions: &mut [ApprovalQuestion]) {
        for question in questions {
            question.approval_id = Uuid::now_v7().to_string();
            question.expires_at = SystemTime::now().checked_add(self.approval_timeout);
            let call = Call {
                thread_id: Some(self.conversation_id.clone()),
                principal: self.on_behalf_of.principal.clone(),
                via: VIA,
                ..Call::new(question.tool_id.clone()).arguments(Raw::from(question.arguments.clone()))
            };
            question.passed = self.agent.tools.results_to_pass(call).await;
        }
    }
}
