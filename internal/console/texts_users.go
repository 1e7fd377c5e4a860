package console

import "github.com/fiscalhub/fiscalhub/internal/lang"

func userTexts() lang.Texts {
	return lang.Texts{
		"users.lead":        lang.Text("Who may sign in to this console, and what each person may do.", "Quién puede entrar a esta consola y qué puede hacer."),
		"users.invite":      lang.Text("Invite a person", "Invitar a una persona"),
		"users.invite_lead": lang.Text("The person gets a link, valid for 24 hours and once, to choose a password. You send it.", "La persona recibe un enlace, válido 24 horas y una sola vez, donde elige su contraseña. Usted se lo envía."),
		"users.name":        lang.Text("Name", "Nombre"),
		"users.role":        lang.Text("Role", "Rol"),
		"users.last":        lang.Text("Last sign-in", "Última entrada"),
		"users.create":      lang.Text("Create and show the link", "Crear y mostrar el enlace"),
		"users.never":       lang.Text("Never", "Nunca"),
		"users.invited":     lang.Text("Invited", "Invitada"),
		"users.disabled":    lang.Text("Disabled", "Inactiva"),
		"users.you":         lang.Text("you", "usted"),
		"users.no":          lang.Text("Off", "No"),
		"users.back":        lang.Text("All people", "Todas las personas"),

		"users.every_environment": lang.Text("Every environment", "Todos los ambientes"),
		"users.taxpayers_hint":    lang.Text("For accountants and developers. Operators and auditors see all of them.", "Para contables y desarrolladores. Operadores y auditores ven todos."),
		"users.role_operator":     lang.Text("Operator: all taxpayers, everything", "Operador: todos los contribuyentes, todo"),
		"users.role_auditor":      lang.Text("Auditor: sees everything, changes nothing", "Auditor: ve todo, no cambia nada"),
		"users.role_accountant":   lang.Text("Accountant: documents and exports of its taxpayers", "Contable: comprobantes y exportaciones de sus contribuyentes"),
		"users.role_developer":    lang.Text("Developer: keys, webhooks and requests of its taxpayers", "Desarrollador: claves, webhooks y solicitudes de sus contribuyentes"),

		"users.link":              lang.Text("Access link", "Enlace de acceso"),
		"users.link_title":        lang.Text("Copy this link now: it is not shown again", "Copie este enlace ahora: no se vuelve a mostrar"),
		"users.without_taxpayers": lang.Text("%s sees no taxpayer, and so can see and issue nothing. Choose at least one below, with the role.", "%s no ve ningún contribuyente: no puede ver ni emitir nada. Márquele al menos uno abajo, en el rol y los contribuyentes."),
		"users.link_text":         lang.Text("Send it to %s in a safe way. It is valid for 24 hours and once.", "Envíelo a %s por un medio seguro. Es válido durante 24 horas y una sola vez."),

		"users.change_role":      lang.Text("Role and taxpayers", "Rol y contribuyentes"),
		"users.change_role_lead": lang.Text("When you save, all sessions of the person end.", "Al guardar, la persona sale de todas sus sesiones."),
		"users.access":           lang.Text("Access", "Acceso"),
		"users.reset":            lang.Text("Make a new link", "Crear un enlace nuevo"),
		"users.reset_lead":       lang.Text("Removes the password and the second factor, ends the sessions and enables the person again.", "Borra la contraseña y el segundo factor, cierra las sesiones y activa a la persona de nuevo."),
		"users.reset_confirm":    lang.Text("Remove the password of this person and make a new link?", "¿Borrar la contraseña de esta persona y crear un enlace nuevo?"),
		"users.disable":          lang.Text("Disable", "Desactivar"),
		"users.disable_lead":     lang.Text("Ends the sessions within 5 seconds. What the person did stays in the audit log.", "Cierra sus sesiones en menos de 5 segundos. Lo que hizo queda en la auditoría."),
		"users.disable_confirm":  lang.Text("Disable this person? All of the person's sessions end.", "¿Desactivar a esta persona? Saldrá de todas sus sesiones."),
		"users.self":             lang.Text("This is you. Change your password, language and second factor in your account; another operator can change your role.", "Es usted. Cambie su contraseña, su idioma y su segundo factor en su cuenta; otro operador puede cambiar su rol."),

		"users.other_environment": lang.Text("This person is not of your environment alone. An operator of every environment can change the person.", "Esta persona no es solo de su ambiente. La cambia un operador de todos los ambientes."),

		"users.wrong_name":     lang.Text("Enter a name of 1 to 100 characters.", "Escriba un nombre de 1 a 100 caracteres."),
		"users.wrong_email":    lang.Text("Enter an email like ana@example.com.", "Escriba un correo como ana@ejemplo.com.do."),
		"users.email_taken":    lang.Text("Another person has this email already.", "Otra persona ya usa este correo."),
		"users.wrong_role":     lang.Text("Choose a role.", "Elija un rol."),
		"users.wrong_taxpayer": lang.Text("One of the taxpayers does not exist: load the page again.", "Uno de los contribuyentes no existe: cargue la página de nuevo."),

		"done.users.role":    lang.Text("The role is saved. The sessions of the person have ended.", "Se guardó el rol. Las sesiones de la persona terminaron."),
		"done.users.disable": lang.Text("The person is disabled, and all sessions have ended.", "La persona está inactiva y sus sesiones terminaron."),
	}
}
