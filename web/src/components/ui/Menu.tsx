import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";
import "./Menu.css";

interface Props {
  label: string;
  icon: IconName;
  text?: string; // shown beside the icon
  children: ReactNode;
}

/** A button that opens a list of things to do. */
export function Menu({ label, icon, text, children }: Props) {
  return (
    // Not modal: a modal one writes styles into the page, which its policy forbids.
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger className={text ? "quiet" : "quiet icon-only"} aria-label={text ?? label} title={label}>
        <Icon name={icon} />
        {text && <span className="menu-text">{text}</span>}
        {text && <Icon name="down" size={14} />}
      </DropdownMenu.Trigger>
      {/* Inside of main: everything on the page belongs to a landmark. */}
      <DropdownMenu.Portal container={document.getElementById("main")}>
        <DropdownMenu.Content className="menu" sideOffset={6} align="end" collisionPadding={8}>
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

export function MenuItem({ onSelect, children }: { onSelect: () => void; children: ReactNode }) {
  return (
    <DropdownMenu.Item className="menu-item" onSelect={onSelect}>
      {children}
    </DropdownMenu.Item>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <DropdownMenu.Label className="menu-label">{children}</DropdownMenu.Label>;
}
