import { DropdownMenu } from "radix-ui";
import { createContext, type ReactNode, useContext, useState } from "react";
import { Icon, type IconName } from "./Icon";
import "./Menu.css";

interface Props {
  label: string;
  icon: IconName;
  text?: string; // shown beside the icon
  children: ReactNode;
}

const Trigger = createContext<HTMLButtonElement | null>(null);

/** A button that opens a list of things to do. */
export function Menu({ label, icon, text, children }: Props) {
  const [trigger, setTrigger] = useState<HTMLButtonElement | null>(null);
  // A modal dialog covers what is not in it. Elsewhere it is in main: everything on the page belongs to a landmark.
  const container = trigger?.closest("dialog") ?? document.getElementById("main");
  return (
    // Not modal: a modal one writes styles into the page, which its policy forbids.
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger
        ref={setTrigger}
        className={text ? "quiet" : "quiet icon-only"}
        aria-label={text ?? label}
        title={label}
      >
        <Icon name={icon} />
        {text && <span className="menu-text">{text}</span>}
        {text && <Icon name="down" size={14} />}
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal container={container}>
        <DropdownMenu.Content className="menu" sideOffset={6} align="end" collisionPadding={8}>
          <Trigger value={trigger}>{children}</Trigger>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

export function MenuItem({ onSelect, children }: { onSelect: () => void; children: ReactNode }) {
  const trigger = useContext(Trigger);
  const select = () => {
    trigger?.focus(); // a dialog that this opens gives the focus back to it: the item is gone by then
    onSelect();
  };
  return (
    <DropdownMenu.Item className="menu-item" onSelect={select}>
      {children}
    </DropdownMenu.Item>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <DropdownMenu.Label className="menu-label">{children}</DropdownMenu.Label>;
}
