/** Search and commands: one field over everything on the page, and over the messages of all sessions. */

import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { explain } from "../../api/client";
import * as queries from "../../api/queries";
import { MIN_SEARCH, search } from "../../api/search";
import { follow } from "../keyboard/follow";
import { Keys } from "../keyboard/Keys";
import { keysOf } from "../keyboard/keys";
import { count } from "../text/labels";
import { Icon } from "../ui/Icon";
import { useDebounced } from "../ui/useDebounced";
import { chooseEntries, type Entry, type ShownGroup } from "./choose";
import { useEntries } from "./entries";
import { pieces, type Range } from "./fuzzy";
import { toEntries } from "./results";
import "./Palette.css";

const TYPING_MS = 150;

export default function Palette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const { groups, found } = useShown(typed);
  const shown = groups.flatMap(({ entries }) => entries);
  const [wantedId, setWantedId] = useState<string | null>(null);
  const active = Math.max(
    0,
    shown.findIndex((entry) => entry.id === wantedId),
  );
  const optionId = (index: number) => `${id}-${index}`;

  useEffect(() => field.current?.focus(), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the active entry moves
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active, typed]);

  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter") {
      event.preventDefault();
      list.current?.querySelector<HTMLElement>("[aria-selected=true]")?.click();
    } else if (step && shown.length > 0) {
      event.preventDefault();
      setWantedId(shown[(active + step + shown.length) % shown.length]?.id ?? null);
    }
  };
  return (
    <>
      <label className="palette-field">
        <Icon name="search" />
        <span className="hidden">Search and commands</span>
        <input
          ref={field}
          type="text"
          role="combobox"
          aria-expanded={shown.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={shown.length > 0 ? optionId(active) : undefined}
          aria-autocomplete="list"
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          placeholder="Search messages, or jump to a session, an agent, a table…"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setWantedId(null);
          }}
          onKeyDown={onKeyDown}
        />
      </label>
      <div ref={list} id={`${id}-list`} className="palette-list" role="listbox" aria-label="Results">
        {groups.map(({ group, entries }) => (
          <div key={group} role="group" aria-labelledby={`${id}-${group}`}>
            <div id={`${id}-${group}`} className="palette-group" role="presentation">
              {group}
            </div>
            {entries.map((entry) => (
              <Option
                key={entry.id}
                id={optionId(shown.indexOf(entry))}
                entry={entry}
                isActive={shown[active] === entry}
                onPoint={() => setWantedId(entry.id)}
                onChosen={onClose}
              />
            ))}
          </div>
        ))}
      </div>
      <Status shown={shown.length} typed={typed} found={found} />
    </>
  );
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

/** Return the entries to show, and the state of the search in messages. */
function useShown(typed: string): { groups: ShownGroup[]; found: ReturnType<typeof useFound> } {
  const entries = useEntries(typed.trim() !== "");
  const found = useFound(typed);
  const agents = useQuery(queries.agents).data;
  const groups = useMemo(() => {
    const { messages, sessions } = toEntries(found.results, entries, agents ?? []);
    return chooseEntries(typed, [...entries, ...sessions], messages);
  }, [typed, entries, found.results, agents]);
  return { groups, found };
}

function useFound(typed: string) {
  const wanted = useDebounced(typed.trim(), TYPING_MS);
  const isWanted = typed.trim().length >= MIN_SEARCH;
  const asked = useQuery({ ...search(wanted), enabled: isWanted && wanted.length >= MIN_SEARCH });
  return {
    results: (isWanted && asked.data?.results) || NOTHING,
    index: isWanted ? asked.data?.index : undefined,
    hasMore: isWanted && Boolean(asked.data?.next),
    error: isWanted ? asked.error : null,
    isSearching: isWanted && (wanted !== typed.trim() || asked.isFetching),
  };
}

const NOTHING: never[] = [];

interface OptionProps {
  id: string;
  entry: Entry;
  isActive: boolean;
  onPoint: () => void;
  onChosen: () => void;
}

/** The field keeps the focus, so that typing goes on. */
function Option({ id, entry, isActive, onPoint, onChosen }: OptionProps) {
  const [, navigate] = useLocation();
  const choose = () => {
    onChosen();
    if (typeof entry.does === "string") follow(entry.does, navigate);
    else entry.does();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the field clicks the active option
    <div
      id={id}
      role="option"
      tabIndex={-1}
      className="palette-option"
      aria-selected={isActive}
      onMouseMove={onPoint}
      onClick={choose}
    >
      <OptionText entry={entry} />
    </div>
  );
}

function OptionText({ entry }: { entry: Entry }) {
  return (
    <>
      <Icon name={entry.icon} size={16} />
      <span className="palette-text">
        <span className="palette-title">
          <Marked text={entry.text} ranges={entry.ranges ?? []} />
        </span>
        {entry.snippet && (
          <span className="palette-snippet">
            <Marked text={entry.snippet.text} ranges={entry.snippet.ranges} />
          </span>
        )}
      </span>
      {entry.detail && <span className="muted small">{entry.detail}</span>}
      {entry.command && <Keys keys={keysOf(entry.command)} />}
    </>
  );
}

function Marked({ text, ranges }: { text: string; ranges: readonly Range[] }) {
  return pieces(text, ranges).map((each, index) => (each.isMatch ? <mark key={index}>{each.text}</mark> : each.text));
}

/** The line below the list. */
function Status({ shown, typed, found }: { shown: number; typed: string; found: ReturnType<typeof useFound> }) {
  const { index, error, hasMore, isSearching } = found;
  const isShort = typed.trim() !== "" && typed.trim().length < MIN_SEARCH;
  return (
    <div className="palette-status muted small" role="status">
      <span>
        {isSearching
          ? "Searching messages…"
          : shown === 0
            ? `Nothing matches “${typed.trim()}”.`
            : count(shown, "result")}
      </span>
      {isShort && <span>Type {MIN_SEARCH} letters to search in messages.</span>}
      {hasMore && <span>More messages match. Add a word to narrow it down.</span>}
      {error && <span className="bad-text">Messages could not be searched: {explain(error)}</span>}
      {index && !index.is_complete && (
        <span>Older messages are still being indexed ({Math.floor(index.percent)} %), so some may be missing.</span>
      )}
    </div>
  );
}
