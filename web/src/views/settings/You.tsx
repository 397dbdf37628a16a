import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client";
import * as queries from "../../api/queries";
import { MAX_LENGTH } from "../../api/server.generated";
import { BROWSER_ZONE, ZoneNames } from "../../components/text/zone";
import { ErrorText } from "../../components/ui/ErrorText";
import { Form } from "../../components/ui/Form";
import { SettingsSection } from "../../components/ui/SettingsSection";

export function You() {
  const me = useQuery(queries.me).data;
  const [written, setWritten] = useState<string | null>(null); // null: as saved
  const save = queries.useAct(
    (timezone: string) => call("PATCH /users/{user_id}", { path: { user_id: me?.user.id ?? "" }, body: { timezone } }),
    [["me"], ["agents"]],
    () => setWritten(null),
  );
  if (!me) return null;
  const saved = me.user.timezone ?? "";
  return (
    <SettingsSection
      title="Your time zone"
      text="Used for times such as “tomorrow at 9”, and by agents without their own time zone."
    >
      <Form className="row wrap" act={save} onSubmit={() => save.mutate((written ?? saved).trim())}>
        <input
          value={written ?? saved}
          required
          maxLength={MAX_LENGTH.UserChange.timezone}
          list="time-zones"
          aria-label="Your time zone"
          onChange={(event) => setWritten(event.target.value)}
        />
        <ZoneNames />
        <button type="submit" disabled={save.isPending || (written ?? saved).trim() === saved}>
          Save
        </button>
        {saved !== BROWSER_ZONE && (
          <button type="button" disabled={save.isPending} onClick={() => save.mutate(BROWSER_ZONE)}>
            Use {BROWSER_ZONE}
          </button>
        )}
      </Form>
      <ErrorText error={save.error} />
    </SettingsSection>
  );
}
