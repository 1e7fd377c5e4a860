package console

import "github.com/fiscalhub/fiscalhub/internal/lang"

func signInTexts() lang.Texts {
	return lang.Texts{
		"sign_in.title":     lang.Text("Sign in", "Iniciar sesión"),
		"sign_in.lead":      lang.Text("Electronic fiscal invoicing for the Dominican Republic", "Facturación electrónica de la República Dominicana"),
		"sign_in.password":  lang.Text("Password", "Contraseña"),
		"sign_in.code":      lang.Text("Code of the second factor", "Código del segundo factor"),
		"sign_in.code_hint": lang.Text("Only if you have set it up: the 6 digits of your app, or a recovery code.", "Solo si lo activó: el código de 6 dígitos de su aplicación, o un código de recuperación."),
		"sign_in.submit":    lang.Text("Sign in", "Entrar"),
		"sign_in.help":      lang.Text("No access, or lost your password? Ask the person who runs the service for a new link.", "¿No tiene acceso o perdió su contraseña? Pida un enlace nuevo a quien opera el servicio."),
		"sign_in.denied":    lang.Text("The email, the password or the code is not right.", "El correo, la contraseña o el código no es correcto."),
		"sign_in.limited":   lang.Text("Too many attempts have failed. Wait %d seconds and try again.", "Demasiados intentos fallidos. Espere %d segundos e inténtelo de nuevo."),

		"welcome.title":  lang.Text("Choose your password", "Elija su contraseña"),
		"welcome.lead":   lang.Text("Hello, %s. With this password and your email %s you sign in to the console.", "Hola, %s. Con esta contraseña y su correo %s entrará a la consola."),
		"welcome.submit": lang.Text("Save and sign in", "Guardar y entrar"),

		"password.new":       lang.Text("New password", "Contraseña nueva"),
		"password.again":     lang.Text("The password again", "Repita la contraseña"),
		"password.hint":      lang.Text("At least %d characters. A long sentence is easy to remember and hard to guess.", "Al menos %d caracteres. Una frase larga es fácil de recordar y difícil de adivinar."),
		"password.short":     lang.Text("The password must have at least %d characters.", "La contraseña debe tener al menos %d caracteres."),
		"password.long":      lang.Text("The password is too long.", "La contraseña es demasiado larga."),
		"password.common":    lang.Text("This password is one of the most common ones: choose another one.", "Esta contraseña es una de las más comunes: elija otra."),
		"password.different": lang.Text("The two passwords are not the same.", "Las dos contraseñas no son iguales."),
	}
}
