/** Tool calls that wait for approval now. Each is gone when it is answered, here or in its session. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import * as queries from "../../api/queries";
import type { ApprovalShape } from "../../api/rest.generated";
import { ApprovalForm } from "../../components/approvals/ApprovalForm";
import { Time } from "../../components/text/times";
import "./WaitingApprovals.css";

export function WaitingApprovals() {
  const waiting = useQuery(queries.waitingApprovals).data ?? [];
  if (waiting.length === 0) return null;
  return (
    <section aria-labelledby="waiting-approvals">
      <h2 id="waiting-approvals">Waiting for your approval</h2>
      <ul className="waiting-approvals">
        {waiting.map((each) => (
          <WaitingApproval key={`${each.run_id} ${each.call_id}`} asked={each} />
        ))}
      </ul>
    </section>
  );
}

function WaitingApproval({ asked }: { asked: ApprovalShape }) {
  return (
    <li className="card">
      <p className="row wrap waiting-head">
        <span className="badge wait">Needs approval</span>
        <span className="muted small">
          <Time at={asked.asked_at} form="both" />
        </span>
        <Link className="push" href={`/ui/sessions/${asked.session_id}`}>
          Open session
        </Link>
      </p>
      <ApprovalForm
        runId={asked.run_id}
        callId={asked.call_id}
        tool={asked.tool}
        sentence={asked.sentence}
        shown={asked.shown}
      />
    </li>
  );
}
